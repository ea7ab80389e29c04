//! Operations of a stage beforehand.

use crate::operation::AppClass;
use crate::plan::{AppPlan, CallPlan};

/// Operations of a stage, where they are known beforehand: for progress alone.
pub(crate) fn expected_operations(plan: &AppPlan) -> u64 {
    let transfers = |call: &CallPlan| match call.class {
        AppClass::Write | AppClass::Read | AppClass::Update | AppClass::Copy => {
            let set = &plan.sets[usize::from(call.set)];
            set.size_bytes_max.div_ceil(set.transfer_bytes.max(1))
        }
        _ => 1,
    };
    let mut sum = 0u64;
    for group in &plan.groups {
        let processes = u64::from(group.processes);
        for step in &group.steps {
            let around =
                (step.begin.len() + step.end.len()) as u64 * group.iterations + step.once.len() as u64;
            let items: u64 = (0..processes).map(|process| plan.share(group, step, process, 0).1).sum();
            let each: u64 =
                step.each.iter().map(|call| transfers(call) / call.every.min(transfers(call)).max(1)).sum();
            sum = sum
                .saturating_add(around * processes)
                .saturating_add(items.saturating_mul(each * group.iterations));
        }
    }
    sum
}

//! Commits of a stage on the logs of this host.

use layer::observations::CommitActivity;

use crate::log::Logs;
use crate::operation::AppClass;
use crate::plan::{AppPlan, StepPlan};
use crate::progress::Progress;

/// Commits and recovered records of the logs of this host; none where the stage has no calls on logs.
pub(crate) fn of(plan: &AppPlan, logs: &Logs, progress: &Progress) -> Option<CommitActivity> {
    let steps = || plan.groups.iter().flat_map(|group| &group.steps);
    let has = |class| steps().flat_map(StepPlan::calls).any(|call| call.class == class);
    let counts = logs.take_counts();
    let is_of_logs = has(AppClass::Append) || has(AppClass::Recover);
    is_of_logs.then(|| CommitActivity {
        logs: logs.count(),
        commits: counts.commits,
        syncs: counts.syncs,
        objects: counts.objects,
        commits_per_sync: CommitActivity::mean(counts.commits, counts.syncs),
        commits_per_object: CommitActivity::mean(counts.commits, counts.objects),
        commits_per_sync_max: counts.largest,
        checkpoints: progress.least_of(plan, AppClass::Update),
        recovered_records: counts.recovered,
    })
}

//! Times of checkpoints: how long ranks stand still, and what goes on behind them.

use layer::observations::{CheckpointActivity, CheckpointBlocking};
use report::page::{Page, Style};
use units::counted;
use units::human::human_ns;

/// Words for the time of a stage that has computing in it beside its checkpoints.
pub(super) fn with_computing(seen: &CheckpointActivity) -> &'static str {
    let computes = seen.blocking.as_ref().is_some_and(|blocking| blocking.compute_ns > 0);
    if computes { " with computing" } else { "" }
}

/// Times of a checkpoint: ranks stand still, copies are flushed. Nothing where the stage is one checkpoint, whose time is told already.
pub(super) fn blocking(page: &mut Page, seen: &CheckpointBlocking) {
    if !seen.is_async && seen.checkpoints < 2 && seen.compute_ns == 0 {
        return;
    }
    let parts = if seen.is_async {
        format!(
            ": copy {}, stall {} (waiting for the previous flush)",
            human_ns(seen.copy_ns as f64),
            human_ns(seen.stall_ns as f64)
        )
    } else {
        String::new()
    };
    let text = format!(
        "{} per checkpoint and rank (slowest rank {}){parts}; {} complete, {} of computing before each",
        human_ns(seen.blocking_ns as f64),
        human_ns(seen.blocking_most_ns as f64),
        counted(seen.checkpoints, "checkpoint"),
        human_ns(seen.compute_ns as f64)
    );
    page.field("blocking", &text, Style::Plain);
    if let Some(flush_ns) = seen.flush_ns {
        let overlap = seen.overlap_fraction.map_or(String::new(), |overlap| {
            format!(", {:.1} % of it while ranks continued", overlap * 100.0)
        });
        page.field(
            "flush",
            &format!("{} per checkpoint and rank{overlap}", human_ns(flush_ns as f64)),
            Style::Plain,
        );
    }
}

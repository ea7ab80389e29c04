//! Short help of the command that measures the layer.

use workload::help::{Example, Help};

/// Options that most users need, and examples.
pub(crate) const HELP: Help = Help {
    options: &["endpoint", "message-sizes", "inflight", "threads", "time", "master", "token-file", "json"],
    examples: &[
        Example::new("software overhead, over loopback", "net --time 5s"),
        Example::new(
            "empty RPCs and 1 MiB each way to one engine",
            "net tcp://192.0.2.10:31416 --token-file secret --message-sizes '(0 0) (b1m 0) (0 b1m)'",
        ),
        Example::new(
            "every link between four servers",
            "net --path /shared --token-file secret --endpoint 0-3:2 --master 0-3:2 --traffic matrix --time 10s",
        ),
    ],
};

//! The links of a phase whose masters are engines: figures by sender and receiver, and what is slow.

use std::collections::BTreeMap;

use report::record::PhaseRecord;
use report::words::factor;
use statistics::{
    MatrixFinding, MatrixPart, PhaseSamples, ShareSummary, Slow, SparseHistogram, by_origin, find_slow,
};
use units::{clean, counted, human_bytes_per_second, human_ns, percent, rate};

use crate::NetworkPlan;

/// Most lines a side: more are joined.
pub(super) const SIDE_MAX: usize = 32;
/// Lines a side from which on endpoints and masters of one rank are joined.
const TAGS_SIDE_MAX: usize = 8;
/// Slow hosts and links that are named; of more, the rest is counted.
const NAMED_MAX: usize = 4;

/// Figures of one pair of sender and receiver.
#[derive(Clone, Debug)]
pub(super) struct Pair {
    pub(super) operations: u64,
    pub(super) errors: u64,
    pub(super) operations_per_second: f64,
    pub(super) bytes_per_second: f64,
    pub(super) mean_ns: Option<f64>,
    pub(super) p99_ns: Option<u64>,
}

/// Counters of several masters with several endpoints.
#[derive(Default)]
struct Sum {
    operations: u64,
    bytes: u64,
    errors: u64,
    latency: SparseHistogram,
}

impl Sum {
    fn add(&mut self, share: &ShareSummary) {
        self.operations += share.operations;
        self.bytes += share.bytes;
        self.errors += share.errors;
        self.latency.merge(&share.histogram);
    }

    fn pair(&self, samples: &PhaseSamples) -> Pair {
        let per_second = |amount: u64| amount as f64 * 1e9 / samples.elapsed_ns.max(1) as f64;
        Pair {
            operations: self.operations,
            errors: self.errors,
            operations_per_second: per_second(self.operations),
            bytes_per_second: per_second(self.bytes),
            mean_ns: self.latency.mean_ns(),
            p99_ns: self.latency.percentile(99.0),
        }
    }
}

/// Rows are senders, columns receivers.
pub(super) struct Matrix {
    pub(super) rows: Vec<String>,
    pub(super) columns: Vec<String>,
    /// None where the plan has no such pair.
    pub(super) pairs: Vec<Vec<Option<Pair>>>,
    /// Items that rows and columns stand for: `ranks`, `endpoints`, `groups of 4 ranks`.
    pub(super) lines: String,
    /// Whether its colours show bytes a second, or RPCs a second.
    pub(super) in_bytes: bool,
    /// Whether a row and a column of the same name are the same host.
    by_rank: bool,
    /// Hosts of ranks, for sentences.
    hosts: BTreeMap<String, String>,
}

/// How masters and endpoints become rows and columns.
#[derive(Clone, Copy)]
enum Lines {
    Labels,
    /// Bins of this many ranks.
    Ranks(u32),
    /// Bins of this many places in the plan.
    Places(usize),
}

impl Lines {
    fn of(plan: &NetworkPlan) -> Self {
        let side = plan.masters.len().max(plan.endpoints.len());
        let ranks = plan.masters.iter().map(|master| master.rank);
        let ranks: Option<Vec<u32>> = ranks.chain(plan.endpoints.iter().map(|one| Some(one.rank))).collect();
        let Some(mut ranks) = ranks else {
            return if side <= SIDE_MAX { Self::Labels } else { Self::Places(side.div_ceil(SIDE_MAX)) };
        };
        ranks.sort_unstable();
        ranks.dedup();
        if side <= TAGS_SIDE_MAX && side > ranks.len() {
            return Self::Labels;
        }
        // Bins of numbers, not of ranks that are there: so many that the largest number has its place.
        let numbers = ranks.last().map_or(0, |last| *last as usize + 1);
        Self::Ranks(if ranks.len() <= SIDE_MAX { 1 } else { numbers.div_ceil(SIDE_MAX) as u32 })
    }

    /// The line of a master or endpoint: a key that sorts, and its name.
    fn line(self, at: usize, rank: Option<u32>, label: &str) -> (u64, String) {
        match (self, rank) {
            (Self::Ranks(1), Some(rank)) => (rank.into(), rank.to_string()),
            (Self::Ranks(bin), Some(rank)) => {
                let first = rank / bin * bin;
                (first.into(), format!("{first}-{}", first + bin - 1))
            }
            (Self::Places(bin), _) => {
                let first = at / bin * bin;
                (first as u64, format!("{}-{}", first + 1, first + bin))
            }
            _ => (at as u64, clean(label).into_owned()),
        }
    }

    fn words(self) -> String {
        match self {
            Self::Labels => "endpoints".to_owned(),
            Self::Ranks(1) => "ranks".to_owned(),
            Self::Ranks(bin) => format!("groups of {bin} ranks"),
            Self::Places(bin) => format!("groups of {bin} endpoints in plan order"),
        }
    }
}

/// `10.0.0.4` of `tcp://10.0.0.4:31416`.
fn host_of(uri: &str) -> &str {
    let rest = uri.split_once("://").map_or(uri, |(_, rest)| rest);
    match rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, _)) => host,
        None => rest.split([':', '/']).next().unwrap_or_default(),
    }
}

impl Matrix {
    /// The matrix of a phase; none where no masters drive.
    pub(super) fn of(phase: &PhaseRecord) -> Option<Self> {
        let plan = phase.plan.of().filter(|plan: &&NetworkPlan| !plan.masters.is_empty())?;
        let lines = Lines::of(plan);
        let row_of: Vec<_> = plan
            .masters
            .iter()
            .enumerate()
            .map(|(at, master)| lines.line(at, master.rank, &master.label))
            .collect();
        let column_of: Vec<_> = plan
            .endpoints
            .iter()
            .enumerate()
            .map(|(at, endpoint)| lines.line(at, Some(endpoint.rank), &endpoint.label))
            .collect();
        let mut sums: BTreeMap<(u64, u64), Sum> = BTreeMap::new();
        for origin in by_origin(&phase.samples) {
            let is_own = |label: &String| origin.origin.as_ref() == Some(label);
            let Some(master) = plan.masters.iter().position(|master| is_own(&master.label)) else { continue };
            for part in &origin.parts {
                if let Some(column) = column_of.get(part.part) {
                    sums.entry((row_of[master].0, column.0)).or_default().add(&part.figures);
                }
            }
        }
        for (master, row) in plan.masters.iter().zip(&row_of) {
            for endpoint in &master.endpoints {
                if let Some(column) = column_of.get(*endpoint as usize) {
                    sums.entry((row.0, column.0)).or_default();
                }
            }
        }
        let named = |lines: Vec<(u64, String)>, used: &dyn Fn(u64) -> bool| -> BTreeMap<u64, String> {
            lines.into_iter().filter(|(key, _)| used(*key)).collect()
        };
        let rows = named(row_of, &|key| sums.keys().any(|pair| pair.0 == key));
        let columns = named(column_of, &|key| sums.keys().any(|pair| pair.1 == key));
        let pair = |row: u64, column: u64| sums.get(&(row, column)).map(|sum| sum.pair(&phase.samples));
        let by_rank = matches!(lines, Lines::Ranks(1));
        let hosts = plan.endpoints.iter().map(|one| (one.rank.to_string(), host_of(&one.uri).to_owned()));
        let hosts: BTreeMap<String, String> = hosts.filter(|_| by_rank).collect();
        let mut distinct: Vec<&String> = hosts.values().collect();
        distinct.sort();
        distinct.dedup();
        let says_something = distinct.len() == hosts.len();
        Some(Self {
            pairs: rows
                .keys()
                .map(|row| columns.keys().map(|column| pair(*row, *column)).collect())
                .collect(),
            rows: rows.into_values().collect(),
            columns: columns.into_values().collect(),
            lines: lines.words(),
            in_bytes: plan.rpc_bytes() > 0,
            by_rank,
            hosts: if says_something { hosts } else { BTreeMap::new() },
        })
    }

    fn is_own(&self, row: usize, column: usize) -> bool {
        self.by_rank && self.rows[row] == self.columns[column]
    }

    /// Rank 3 as sentences call it: `rank 3 (10.0.0.4)`.
    fn called(&self, name: &str) -> String {
        let noun = if self.lines.starts_with("groups") {
            "group "
        } else if self.by_rank {
            "rank "
        } else {
            ""
        };
        let host = self.hosts.get(name).map_or_else(String::new, |host| format!(" ({})", clean(host)));
        format!("{noun}{}{host}", clean(name))
    }

    /// Bandwidth or rate of a pair.
    pub(super) fn speed(&self, pair: &Pair) -> f64 {
        if self.in_bytes { pair.bytes_per_second } else { pair.operations_per_second }
    }

    /// Mean times of the pairs, as far as they are comparable: a rank to itself goes over no link.
    fn times(&self) -> Vec<Vec<Option<f64>>> {
        let time = |row: usize, column: usize, pair: &Option<Pair>| {
            pair.as_ref().and_then(|pair| pair.mean_ns).filter(|_| !self.is_own(row, column))
        };
        let rows = self.pairs.iter().enumerate();
        rows.map(|(row, pairs)| {
            pairs.iter().enumerate().map(|(column, pair)| time(row, column, pair)).collect()
        })
        .collect()
    }

    /// Sentences that name what is slow or failed, or say that nothing stands out.
    ///
    /// Links are judged by the mean latency of their RPCs: a worker that takes its endpoints in turn is as slow everywhere as its slowest
    /// link, so rates say less.
    pub(super) fn sentences(&self) -> Vec<String> {
        let mut told = self.dead();
        let finding = find_slow(&self.times());
        match finding {
            MatrixFinding::TooFew => told.push(
                "too few pairs to distinguish a slow host from a slow link: at least three senders and three receivers are required"
                    .to_owned(),
            ),
            MatrixFinding::Even(largest) => told.push(format!(
                "no host or link is significantly slower than the others (largest deviation {})",
                percent(largest - 1.0)
            )),
            MatrixFinding::Slow(slow) => told.extend(self.slow(&slow)),
        }
        told
    }

    /// Pairs of which nothing came through.
    fn dead(&self) -> Vec<String> {
        let pairs = self.pairs.iter().enumerate().flat_map(|(row, pairs)| {
            pairs.iter().enumerate().filter_map(move |(column, pair)| Some((row, column, pair.as_ref()?)))
        });
        let dead: Vec<_> = pairs.filter(|(.., pair)| pair.operations == 0).collect();
        let mut told: Vec<String> = dead
            .iter()
            .take(NAMED_MAX)
            .map(|(row, column, pair)| {
                format!("{}: nothing completed, {}", self.link(*row, *column), counted(pair.errors, "error"))
            })
            .collect();
        if dead.len() > NAMED_MAX {
            told.push(format!("and {} more pairs without any completed RPC", dead.len() - NAMED_MAX));
        }
        told
    }

    fn link(&self, row: usize, column: usize) -> String {
        format!("link {} → {}", clean(&self.rows[row]), clean(&self.columns[column]))
    }

    fn slow(&self, slow: &[Slow]) -> Vec<String> {
        let mut told: Vec<String> = Vec::new();
        for one in slow.iter().take(NAMED_MAX) {
            let times = factor(one.factor);
            let figures = self.figures(one.part);
            told.push(match one.part {
                MatrixPart::Row(row) => format!(
                    "{} is slow as a sender: RPCs from it take {times} times as long as from the others{figures}",
                    self.called(&self.rows[row])
                ),
                MatrixPart::Column(column) => format!(
                    "{} is slow as a receiver: RPCs to it take {times} times as long as to the others{figures}",
                    self.called(&self.columns[column])
                ),
                MatrixPart::Cell(row, column) => format!(
                    "{} is slow: its RPCs take {times} times as long as its two ends take elsewhere{figures}",
                    self.link(row, column)
                ),
            });
        }
        if slow.len() > NAMED_MAX {
            told.push(format!("and {} more", slow.len() - NAMED_MAX));
        }
        told
    }

    /// Medians of a part and of the rest that is like it, between the same senders or receivers: ` (9.60 ms and 98.0 MiB/s a pair
    /// against 4.00 ms and 240 MiB/s)`.
    fn figures(&self, part: MatrixPart) -> String {
        let is_in = |row: usize, column: usize| match part {
            MatrixPart::Row(at) => at == row,
            MatrixPart::Column(at) => at == column,
            MatrixPart::Cell(at, other) => (at, other) == (row, column),
        };
        let is_like = |row: usize, column: usize| match part {
            MatrixPart::Row(at) => self.pairs[at][column].is_some(),
            MatrixPart::Column(at) => self.pairs[row][at].is_some(),
            MatrixPart::Cell(at, other) => at == row || other == column,
        };
        let middle = |inside: bool, figure: &dyn Fn(&Pair) -> Option<f64>| {
            let mut values: Vec<f64> = Vec::new();
            for (row, pairs) in self.pairs.iter().enumerate() {
                for (column, pair) in
                    pairs.iter().enumerate().filter(|(column, _)| !self.is_own(row, *column))
                {
                    let belongs =
                        if inside { is_in(row, column) } else { !is_in(row, column) && is_like(row, column) };
                    values.extend(pair.as_ref().filter(|_| belongs).and_then(figure));
                }
            }
            values.sort_unstable_by(f64::total_cmp);
            values.get(values.len() / 2).copied()
        };
        let words = |inside: bool| {
            let time = middle(inside, &|pair| pair.mean_ns)?;
            let speed = middle(inside, &|pair| Some(self.speed(pair)))?;
            let speed = if self.in_bytes { human_bytes_per_second(speed) } else { rate(speed) };
            Some(format!("{} and {speed}", human_ns(time)))
        };
        match (words(true), words(false)) {
            (Some(own), Some(others)) => format!(" ({own} per pair, others {others})"),
            _ => String::new(),
        }
    }
}

/// The values at the ends of a range of colours: an even matrix shall look even, so the range spans a factor of two at least.
/// None without values.
pub(super) fn colour_range(values: &[f64], low_is_good: bool) -> Option<(f64, f64)> {
    let low = values.iter().copied().reduce(f64::min)?;
    let high = values.iter().copied().reduce(f64::max)?;
    Some(if low_is_good { (low, high.max(low * 2.0)) } else { (low.min(high / 2.0), high) })
}

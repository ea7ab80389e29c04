//! Comparisons against data whose true difference is known: the right verdict in 95 of 100, a wrong one in at most 5.

use statistics::Direction::{HigherIsFaster, LowerIsFaster};
use statistics::{
    ClassPoint, Difference, Direction, Figure, Histogram, IntervalPoint, SparseHistogram, Verdict,
    adjust_for_many, latency_resolution, mean_latency, percentile_latency, rate_over,
};

use crate::random::Random;

/// Shares of faster, slower, and neither.
type Shares = (f64, f64, f64);

/// Verdicts of `trials`, each of which compares several figures of the same data.
fn shares_of<const N: usize>(
    trials: u64,
    direction: Direction,
    trial: impl Fn(&mut Random) -> [Option<Difference>; N],
) -> [Shares; N] {
    let mut counts = [(0.0, 0.0); N];
    for number in 0..trials {
        let found = trial(&mut Random::new(77_000 + number));
        for (difference, count) in found.iter().zip(&mut counts) {
            match difference.map(|difference| difference.verdict(direction)) {
                Some(Verdict::Faster) => count.0 += 1.0,
                Some(Verdict::Slower) => count.1 += 1.0,
                Some(Verdict::NoDifference | Verdict::TooLittle) | None => {}
            }
        }
    }
    let all = trials as f64;
    counts.map(|(faster, slower)| (faster / all, slower / all, 1.0 - (faster + slower) / all))
}

fn shares(trials: u64, direction: Direction, trial: impl Fn(&mut Random) -> Option<Difference>) -> Shares {
    shares_of(trials, direction, |random| [trial(random)])[0]
}

fn assert_right(what: &str, (right, wrong, missed): Shares) {
    assert!(right >= 0.95 && wrong < 0.001, "{what}: right {right}, wrong {wrong}, missed {missed}");
}

fn assert_calm(what: &str, (faster, slower, _): Shares) {
    assert!(faster + slower <= 0.05, "{what}: called different {}", faster + slower);
}

/// Repeats of a run: every one multiplied by a normal error of 1 %, and one in ten by a hiccup that only ever makes it
/// slower.
fn repeat(random: &mut Random, level: f64) -> f64 {
    let hiccup = if random.uniform() < 0.1 { 0.02 * random.exponential() } else { 0.0 };
    level * (0.01 * random.normal() + hiccup).exp()
}

fn paired(random: &mut Random, true_ratio: f64, count: usize) -> Option<Difference> {
    // The machine drifts by 5 % and more while the pairs are run; a pair shares it.
    let drift = random.autoregression(0.9, count);
    let (a, b): (Vec<f64>, Vec<f64>) = drift
        .iter()
        .map(|drift| {
            let level = 100_000.0 * (0.05 * drift).exp();
            (repeat(random, level), repeat(random, level * true_ratio))
        })
        .unzip();
    Difference::of_pairs(&a, &b, 0.0)
}

fn apart(random: &mut Random, true_ratio: f64, counts: (usize, usize)) -> Option<Difference> {
    let a: Vec<f64> = (0..counts.0).map(|_| repeat(random, 100_000.0)).collect();
    let b: Vec<f64> = (0..counts.1).map(|_| repeat(random, 100_000.0 * true_ratio)).collect();
    Difference::of_independent(&Figure::of_repeats(&a)?, &Figure::of_repeats(&b)?)
}

#[test]
fn two_percent_are_seen_in_enough_repeats() {
    assert_right("16 pairs", shares(400, HigherIsFaster, |random| paired(random, 1.02, 16)));
    assert_right("20 pairs", shares(400, HigherIsFaster, |random| paired(random, 1.02, 20)));
    assert_right("20 and 20", shares(400, HigherIsFaster, |random| apart(random, 1.02, (20, 20))));
    // Fewer are enough where the machine is calmer.
    let calm = |random: &mut Random| {
        let mut side =
            |level: f64| (0..6).map(|_| level * (0.004 * random.normal()).exp()).collect::<Vec<_>>();
        Difference::of_pairs(&side(1e5), &side(1.02e5), 0.0)
    };
    assert_right("6 pairs", shares(400, HigherIsFaster, calm));
}

#[test]
fn equal_repeats_are_not_called_different() {
    for count in [3, 6, 10] {
        let found = shares(4000, LowerIsFaster, |random| paired(random, 1.0, count));
        assert_calm(&format!("{count} pairs"), found);
    }
    for counts in [(3, 3), (10, 10), (3, 10)] {
        let found = shares(1000, LowerIsFaster, |random| apart(random, 1.0, counts));
        assert_calm(&format!("{counts:?}"), found);
    }
}

#[test]
fn drift_that_pairs_share_does_not_hide_a_difference() {
    let found = shares(300, HigherIsFaster, |random| paired(random, 1.03, 10));
    assert!(found.0 > 0.97, "{found:?}");
    let unpaired = shares(300, HigherIsFaster, |random| {
        let mut side = |level: f64| -> Vec<f64> {
            let drift = random.autoregression(0.9, 10);
            drift.iter().map(|drift| repeat(random, level * (0.05 * drift).exp())).collect()
        };
        let (a, b) = (side(100.0), side(103.0));
        Difference::of_independent(&Figure::of_repeats(&a)?, &Figure::of_repeats(&b)?)
    });
    assert!(unpaired.0 < 0.5, "{unpaired:?}");
}

/// One run: the level of each interval is a first-order autoregression with 2 % standard deviation and a correlation of
/// 0.6; latencies are lognormal, their mean well above their median.
fn run(random: &mut Random, level: f64, intervals: usize, operations: u64) -> Vec<IntervalPoint> {
    let levels = random.autoregression(0.6, intervals);
    let point = |(at, wander): (usize, &f64)| {
        let slow = level * (0.02 * wander).exp();
        let mut latency = Histogram::new();
        for _ in 0..operations {
            latency.record((slow * (0.4 * random.normal()).exp()) as u64);
        }
        let done = (1e9 / slow) as u64;
        let class = ClassPoint {
            operations: done,
            bytes: 0,
            errors: 0,
            latency: SparseHistogram::from(&latency),
            ..ClassPoint::default()
        };
        let start_ns = at as u64 * 100_000_000;
        IntervalPoint { start_ns, end_ns: start_ns + 100_000_000, classes: vec![class], in_flight_ns: None }
    };
    levels.iter().enumerate().map(point).collect()
}

/// A figure of a run.
type FigureOf = fn(&[IntervalPoint]) -> Option<Figure>;

fn two_runs<const N: usize>(
    random: &mut Random,
    true_ratio: f64,
    size: (usize, u64),
    figures: [FigureOf; N],
) -> [Option<Difference>; N] {
    let a = run(random, 100_000.0, size.0, size.1);
    let b = run(random, 100_000.0 * true_ratio, size.0, size.1);
    figures.map(|figure| Difference::of_independent(&figure(&a)?, &figure(&b)?))
}

fn rate(points: &[IntervalPoint]) -> Option<Figure> {
    rate_over(points, None, |class| class.operations)
}

fn mean(points: &[IntervalPoint]) -> Option<Figure> {
    mean_latency(points, Some(0))
}

fn p50(points: &[IntervalPoint]) -> Option<Figure> {
    percentile_latency(points, None, 50.0)
}

fn p99(points: &[IntervalPoint]) -> Option<Figure> {
    percentile_latency(points, None, 99.0)
}

#[test]
fn two_percent_are_seen_in_long_runs() {
    let [found] = shares_of(200, HigherIsFaster, |random| two_runs(random, 1.0 / 1.02, (500, 0), [rate]));
    assert_right("rate", found);
    let found = shares_of(40, LowerIsFaster, |random| two_runs(random, 1.02, (500, 80), [p50, mean]));
    for (what, (faster, slower, missed)) in ["p50", "mean"].iter().zip(found) {
        assert_right(what, (slower, faster, missed));
    }
}

#[test]
fn a_tail_is_seen_where_nothing_else_moves() {
    // One operation in fifty takes half as long again in B: p99 moves, p50 does not.
    let tail = |random: &mut Random, stretch: f64| -> Vec<IntervalPoint> {
        let mut points = run(random, 100_000.0, 200, 0);
        for point in &mut points {
            let mut latency = Histogram::new();
            for _ in 0..100 {
                let slow = if random.uniform() < 0.02 { 5.0 * stretch } else { 1.0 };
                latency.record((1e5 * slow * (0.2 * random.normal()).exp()) as u64);
            }
            point.classes[0].latency = SparseHistogram::from(&latency);
        }
        points
    };
    let [tails, medians] = shares_of(40, LowerIsFaster, |random| {
        let (a, b) = (tail(random, 1.0), tail(random, 1.5));
        [p99, p50].map(|figure| Difference::of_independent(&figure(&a)?, &figure(&b)?))
    });
    assert!(tails.1 >= 0.95 && tails.0 == 0.0, "p99: {tails:?}");
    assert!(medians.0 + medians.1 <= 0.05, "p50: {medians:?}");
}

#[test]
fn equal_runs_are_not_called_different() {
    for intervals in [50, 100, 200] {
        let [found] = shares_of(400, HigherIsFaster, |random| two_runs(random, 1.0, (intervals, 0), [rate]));
        assert_calm(&format!("{intervals} intervals"), found);
    }
    let [found] = shares_of(1000, LowerIsFaster, |random| two_runs(random, 1.0, (60, 10), [mean]));
    assert_calm("mean", found);
    let found = shares_of(250, LowerIsFaster, |random| two_runs(random, 1.0, (60, 60), [p50, p99]));
    for (what, found) in ["p50", "p99"].iter().zip(found) {
        assert_calm(what, found);
    }
}

#[test]
fn known_answers_of_pairs() {
    // Logarithms of the ratios 0.01, 0.02, 0.03: mean 0.02, standard error 0.01 / sqrt(3), t with 2 degrees 4.3027.
    let a = [100.0, 100.0, 100.0];
    let b = [0.01_f64, 0.02, 0.03].map(|log| 100.0 * log.exp());
    let found = Difference::of_pairs(&a, &b, 0.0).unwrap();
    let half = 4.302_652_73 * 0.01 / 3_f64.sqrt();
    assert!((found.percent - 100.0 * 0.02_f64.exp_m1()).abs() < 1e-9, "{found:?}");
    assert!((found.percent_low - 100.0 * (0.02 - half).exp_m1()).abs() < 1e-6, "{found:?}");
    assert!((found.percent_high - 100.0 * (0.02 + half).exp_m1()).abs() < 1e-6, "{found:?}");
    // t = 2 sqrt(3) with 2 degrees: p = 1 - t / sqrt(2 + t^2) = 0.0742.
    assert!((found.p_value - 0.074_180).abs() < 1e-5, "{found:?}");
    assert_eq!(found.verdict(HigherIsFaster), Verdict::NoDifference);
    assert_eq!(Difference::of_pairs(&a, &b[..2], 0.0), None);
    assert_eq!(Difference::of_pairs(&a[..1], &b[..1], 0.0), None);
    assert_eq!(Difference::of_pairs(&[1.0, 0.0], &[1.0, 2.0], 0.0), None);
}

#[test]
fn six_pairs_must_all_agree() {
    // Of the 64 parts that the means of subsets make, one is left out at each end: the smallest and the largest ratio
    // bound the interval, so a single pair that disagrees is enough doubt.
    let a = [100.0; 6];
    let agree = Difference::of_pairs(&a, &[101.0, 101.1, 100.9, 101.2, 101.0, 100.8], 0.0).unwrap();
    assert_eq!(agree.verdict(LowerIsFaster), Verdict::Slower);
    assert!(agree.percent_low <= 0.8 + 1e-9 && agree.percent_high >= 1.2 - 1e-9, "{agree:?}");
    let one_against = [101.0, 101.1, 100.9, 101.2, 101.0, 99.99];
    let doubtful = Difference::of_pairs(&a, &one_against, 0.0).unwrap();
    assert_eq!(doubtful.verdict(LowerIsFaster), Verdict::NoDifference);
}

#[test]
fn known_answers_of_independent_sides() {
    // Equal numbers and spreads: Welch's statistic with n - 1 degrees.
    let side = |level: f64| Figure::of_repeats(&[-0.01_f64, 0.0, 0.01].map(|log| level * log.exp())).unwrap();
    let found = Difference::of_independent(&side(100.0), &side(110.0)).unwrap();
    let half = 4.302_652_73 * (2.0_f64 / 3.0).sqrt() * 0.01;
    assert!((found.percent - 10.0).abs() < 1e-9, "{found:?}");
    assert!((found.percent_high - 100.0 * (1.1_f64.ln() + half).exp_m1()).abs() < 1e-6, "{found:?}");
    assert_eq!((found.degrees, found.verdict(HigherIsFaster)), (2.0, Verdict::Faster));
    assert!((found.slower_percent(LowerIsFaster) - 10.0).abs() < 1e-9);
    // An interval of a factor of 2 to either side: half the rate is gone, or twice the latency.
    let wide = Difference { percent_low: -50.0, percent_high: 100.0, ..found };
    assert!((wide.detectable_percent(HigherIsFaster) - 50.0).abs() < 1e-9);
    assert!((wide.detectable_percent(LowerIsFaster) - 100.0).abs() < 1e-9);
    // A lopsided side stays lopsided: with the other known exactly, its own ends remain.
    let exact = Figure { value: 100.0, low: 100.0, high: 100.0, degrees: 9.0 };
    let lopsided = Figure { value: 120.0, low: 115.0, high: 150.0, degrees: 9.0 };
    let found = Difference::of_independent(&exact, &lopsided).unwrap();
    assert!((found.percent_low - 15.0).abs() < 1e-9 && (found.percent_high - 50.0).abs() < 1e-9, "{found:?}");
    // One value against several varies as they do.
    let single = Figure::of_single(100.0, &[-0.01_f64, 0.0, 0.01].map(|log| 110.0 * log.exp())).unwrap();
    assert!((single.high / 100.0 - (4.302_652_73 * 0.01_f64).exp()).abs() < 1e-9, "{single:?}");
}

#[test]
fn equal_things_are_equal() {
    let found = Difference::of_pairs(&[5.0; 4], &[5.0; 4], 0.0).unwrap();
    assert_eq!((found.percent, found.percent_low, found.percent_high, found.p_value), (0.0, 0.0, 0.0, 1.0));
    assert_eq!(found.verdict(LowerIsFaster), Verdict::NoDifference);
    // A nanosecond more where a bucket is a nanosecond wide is no difference, ten are.
    let resolution = |value: f64| latency_resolution(40.0) + latency_resolution(value);
    let close = Difference::of_pairs(&[40.0; 4], &[41.0; 4], resolution(41.0)).unwrap();
    assert_eq!(close.verdict(LowerIsFaster), Verdict::NoDifference);
    let apart = Difference::of_pairs(&[40.0; 4], &[50.0; 4], resolution(50.0)).unwrap();
    assert_eq!(apart.verdict(LowerIsFaster), Verdict::Slower);
}

#[test]
fn too_little_gives_no_figure() {
    let points = run(&mut Random::new(1), 100_000.0, 40, 10);
    assert!(rate(&points[..8]).is_some() && rate(&points[..7]).is_none());
    assert!(mean_latency(&points[..7], None).is_none());
    // 400 operations: 4 beyond p99, 20 are asked for.
    assert!(percentile_latency(&points, None, 90.0).is_some());
    assert_eq!(percentile_latency(&points, None, 99.0), None);
    assert_eq!(percentile_latency(&points, Some(1), 50.0), None);
    assert_eq!(mean_latency(&[], None), None);
}

#[test]
fn ends_too_far_out_give_no_figure() {
    // Two pairs that share nothing: the interval reaches beyond what a number can say.
    assert_eq!(Difference::of_pairs(&[1e-150, 1e150], &[1e150, 1e-150], 0.0), None);
    let side = |values: &[f64]| Figure::of_repeats(values);
    let wild = side(&[1e-200, 1e200]).and_then(|a| Difference::of_independent(&a, &side(&[1.0, 2.0])?));
    assert_eq!(wild, None);
    // Far apart, but a number.
    let far = Difference::of_pairs(&[1.0, 1.0], &[1e10, 1e12], 0.0).unwrap();
    assert!(far.percent_high.is_finite() && far.verdict(HigherIsFaster) == Verdict::NoDifference, "{far:?}");
}

#[test]
fn many_verdicts_are_held_to_a_stricter_level() {
    // Holm (1979): the smallest times 4, the next times 3, never below the one before.
    let found = adjust_for_many(&[0.01, 0.04, 0.03, 0.005]);
    let expected = [0.03, 0.06, 0.06, 0.02];
    assert!(
        found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-12),
        "{found:?}"
    );
    assert_eq!(adjust_for_many(&[0.6, 0.9]), [1.0, 1.0]);
    assert!(adjust_for_many(&[]).is_empty());
}

#[test]
fn of_further_values_ninety_five_in_a_hundred_lie_in_the_range() {
    for count in [2, 3, 5, 10, 30] {
        let trials: u64 = 8000;
        let holds = |number: &u64| {
            let mut random = Random::new(91_000 + number + 1_000_000 * count);
            let values: Vec<f64> = (0..count).map(|_| 70_000.0 * (0.04 * random.normal()).exp()).collect();
            let range = Figure::of_next(&values).expect("two values have a range");
            (range.low..=range.high).contains(&(70_000.0 * (0.04 * random.normal()).exp()))
        };
        let share = (0..trials).filter(holds).count() as f64 / trials as f64;
        // Four standard deviations of the share: 0.05 * 0.95 / 8000.
        assert!((share - 0.95).abs() < 0.01, "{count} values: {share}");
    }
    assert!(Figure::of_next(&[5.0]).is_none() && Figure::of_next(&[5.0, 0.0]).is_none());
    let alike = Figure::of_next(&[5.0, 5.0, 5.0]).unwrap();
    assert!((alike.low - 5.0).abs() < 1e-12 && (alike.high - 5.0).abs() < 1e-12, "{alike:?}");
}

#[test]
fn a_run_against_those_before_it_is_judged_as_its_range_says() {
    // The range of a further value, and the difference of one value beside repeats, are the same statement.
    for number in 0..2000 {
        let mut random = Random::new(5_000 + number);
        let values: Vec<f64> = (0..7).map(|_| 70_000.0 * (0.04 * random.normal()).exp()).collect();
        let next = 70_000.0 * (0.06 * random.normal()).exp();
        let range = Figure::of_next(&values).unwrap();
        let (before, newest) =
            (Figure::of_repeats(&values).unwrap(), Figure::of_single(next, &values).unwrap());
        let found = Difference::of_independent(&before, &newest).unwrap().verdict(HigherIsFaster);
        let expected = match (next < range.low, next > range.high) {
            (true, _) => Verdict::Slower,
            (_, true) => Verdict::Faster,
            _ => Verdict::NoDifference,
        };
        assert_eq!(found, expected, "{next} in {range:?}");
    }
}

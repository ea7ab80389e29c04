//! Outliers in a matrix of times, such as latencies by sender and receiver: a row, a column or a single cell.

use crate::confidence::median_of;

/// Iterations of the median polish: it converges within a few, and what little moves afterwards decides nothing.
const POLISH_ROUNDS: usize = 10;
/// Fewest rows and columns, and cells in each, for a fit whose residuals say something about chance.
const SIDE_MIN: usize = 4;
/// Fewest cells that are compared with each other where they make no grid: a ring, pairs, one receiver.
const CELLS_MIN: usize = 5;
/// A row or column stands out from this many standard errors on, and a cell from this many standard deviations. Of matrices of normal noise
/// from 4 x 4 to 16 x 16, fewer than 1 in 20 have a row, column or cell beyond (the tests draw them).
const SIDE_SCORE_MIN: f64 = 5.0;
const CELL_SCORE_MIN: f64 = 6.5;
/// A cell of a short list, where the median deviation itself is uncertain.
const LIST_SCORE_MIN: f64 = 10.0;
/// Smallest factor that is worth a word, however sure it is.
const FACTOR_MIN: f64 = 1.25;
/// In a matrix too small for a fit, every cell of a side must be slower than every other cell by this factor.
const SMALL_SIDE_FACTOR_MIN: f64 = 1.5;
/// And a single cell by this one.
const SMALL_CELL_FACTOR_MIN: f64 = 2.0;
/// Noise that is always there, as the standard deviation of a logarithm: without it a quiet matrix finds fault with anything.
const NOISE_MIN: f64 = 0.02;
/// Upper quartile of the absolute value of a standard normal variable.
const NORMAL_UPPER_QUARTILE: f64 = 1.150_35;
/// A standard deviation over a median absolute deviation, for normal values.
const DEVIATION_OF_MAD: f64 = 1.4826;
/// Standard error of a median over that of a mean, for normal values: the square root of pi / 2.
const MEDIAN_OF_MEAN: f64 = 1.2533;

/// A part of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatrixPart {
    /// All cells of a row.
    Row(usize),
    /// All cells of a column.
    Column(usize),
    /// One cell: row and column.
    Cell(usize, usize),
}

/// A part that is slower than the others explain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slow {
    /// Which.
    pub part: MatrixPart,
    /// Its time over what it would be if it were like the others.
    pub factor: f64,
}

/// Outliers of a matrix.
#[derive(Clone, Debug, PartialEq)]
pub enum MatrixFinding {
    /// Too few cells to tell one from another.
    TooFew,
    /// Nothing stands out; the largest factor by which a cell deviates from what its row and column explain.
    Even(f64),
    /// Rows and columns first, then cells; the slowest first among each.
    Slow(Vec<Slow>),
}

/// Cells that are known, with the logarithm of their times.
type Cells = Vec<(usize, usize, f64)>;

/// Finds rows, columns and cells that are slower than the rest explains. `times` are rows of equally many cells; a cell that was not
/// measured is none, and so is one whose time is not positive.
///
/// Times are taken as products: of one for the row, one for the column and noise. Tukey's median polish (Exploratory Data Analysis, 1977,
/// chapter 11) splits their logarithms, which a few odd cells do not disturb; a part stands out by how far it lies from the others,
/// measured by the noise of the others. Smaller matrices than 4 x 4 are judged by plain separation, and below 3 x 3 not at all.
#[must_use]
pub fn find_slow(times: &[Vec<Option<f64>>]) -> MatrixFinding {
    let known = times.iter().enumerate().flat_map(|(row, cells)| {
        let cells = cells.iter().enumerate();
        cells.filter_map(move |(column, time)| {
            let time = time.filter(|time| time.is_finite() && *time > 0.0)?;
            Some((row, column, time.ln()))
        })
    });
    let cells: Cells = known.collect();
    let rows = times.len();
    let columns = times.iter().map(Vec::len).max().unwrap_or(0);
    let least = |lines: usize, line: fn(&(usize, usize, f64)) -> usize| {
        let count = |at: usize| cells.iter().filter(|cell| line(cell) == at).count();
        (0..lines).map(count).filter(|count| *count > 0).min().unwrap_or(0)
    };
    let (row_cells, column_cells) = (least(rows, |cell| cell.0), least(columns, |cell| cell.1));
    let side = row_cells.min(column_cells);
    match () {
        () if rows.min(columns) >= SIDE_MIN && side + 1 >= SIDE_MIN => by_fit(&cells, rows, columns),
        () if side <= 1 && cells.len() >= CELLS_MIN => by_list(&cells),
        () if rows.min(columns) >= 3 && side >= 2 => by_separation(&cells, rows, columns),
        () => MatrixFinding::TooFew,
    }
}

/// The median of some values; 0 when there are none.
fn median(values: &mut [f64]) -> f64 {
    median_of(values).unwrap_or(0.0)
}

fn median_deviation(values: &[f64]) -> f64 {
    let middle = median(&mut values.to_vec());
    let mut apart: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    DEVIATION_OF_MAD * median(&mut apart)
}

/// Standard deviation of residuals after a fit, from the upper quartile of their sizes: the median polish makes many of them zero, and a
/// few odd ones shall not count.
fn noise(residuals: &[f64], parameters: usize) -> f64 {
    let mut sizes: Vec<f64> = residuals.iter().map(|residual| residual.abs()).collect();
    sizes.sort_unstable_by(f64::total_cmp);
    let quartile = sizes.get(sizes.len() * 3 / 4).copied().unwrap_or(0.0);
    let free = residuals.len().saturating_sub(parameters).max(1) as f64;
    (quartile / NORMAL_UPPER_QUARTILE * (residuals.len() as f64 / free).sqrt()).max(NOISE_MIN)
}

/// Takes the median of every line out of its cells and adds it to the line's effect.
fn sweep(cells: &mut Cells, effects: &mut [f64], line: fn(&(usize, usize, f64)) -> usize) {
    for (at, effect) in effects.iter_mut().enumerate() {
        let mut own: Vec<f64> = cells.iter().filter(|cell| line(cell) == at).map(|cell| cell.2).collect();
        let middle = median(&mut own);
        *effect += middle;
        cells.iter_mut().filter(|cell| line(cell) == at).for_each(|cell| cell.2 -= middle);
    }
}

/// Lines whose effect lies far above that of the others.
fn slow_lines(effects: &[f64], error: f64) -> Vec<(usize, f64)> {
    let middle = median(&mut effects.to_vec());
    let deviation = median_deviation(effects).max(error);
    let above = effects.iter().enumerate().map(|(at, effect)| (at, effect - middle));
    above.filter(|(_, above)| *above >= SIDE_SCORE_MIN * deviation && *above >= FACTOR_MIN.ln()).collect()
}

fn found(mut sides: Vec<Slow>, mut cells: Vec<Slow>, largest: f64) -> MatrixFinding {
    let slowest_first = |a: &Slow, b: &Slow| b.factor.total_cmp(&a.factor);
    sides.sort_by(slowest_first);
    cells.sort_by(slowest_first);
    sides.extend(cells);
    if sides.is_empty() { MatrixFinding::Even(largest.exp()) } else { MatrixFinding::Slow(sides) }
}

fn by_fit(cells: &Cells, rows: usize, columns: usize) -> MatrixFinding {
    let mut left = cells.clone();
    let (mut of_rows, mut of_columns) = (vec![0.0; rows], vec![0.0; columns]);
    for _ in 0..POLISH_ROUNDS {
        sweep(&mut left, &mut of_rows, |cell| cell.0);
        let middle = median(&mut of_rows.clone());
        of_rows.iter_mut().for_each(|effect| *effect -= middle);
        of_columns.iter_mut().for_each(|effect| *effect += middle);
        sweep(&mut left, &mut of_columns, |cell| cell.1);
        let middle = median(&mut of_columns.clone());
        of_columns.iter_mut().for_each(|effect| *effect -= middle);
        of_rows.iter_mut().for_each(|effect| *effect += middle);
    }
    let residuals: Vec<f64> = left.iter().map(|cell| cell.2).collect();
    let noise = noise(&residuals, rows + columns - 1);
    let error = |lines: usize| noise * MEDIAN_OF_MEAN / (cells.len() as f64 / lines as f64).sqrt();
    let side = |part: fn(usize) -> MatrixPart| {
        move |(at, above): (usize, f64)| Slow { part: part(at), factor: above.exp() }
    };
    let mut sides: Vec<Slow> =
        slow_lines(&of_rows, error(rows)).into_iter().map(side(MatrixPart::Row)).collect();
    sides.extend(slow_lines(&of_columns, error(columns)).into_iter().map(side(MatrixPart::Column)));
    let slow = left.iter().filter(|cell| cell.2 >= CELL_SCORE_MIN * noise && cell.2 >= FACTOR_MIN.ln());
    let slow = slow.map(|cell| Slow { part: MatrixPart::Cell(cell.0, cell.1), factor: cell.2.exp() });
    let largest = residuals.iter().fold(0.0f64, |largest, residual| largest.max(residual.abs()));
    found(sides, slow.collect(), largest)
}

/// Cells that share neither row nor column in a way that tells these apart: each against all.
fn by_list(cells: &Cells) -> MatrixFinding {
    let values: Vec<f64> = cells.iter().map(|cell| cell.2).collect();
    let middle = median(&mut values.clone());
    let above: Vec<f64> = values.iter().map(|value| value - middle).collect();
    // Of so few, the odd one itself may be the upper quartile: the median of all does not see it.
    let noise = median_deviation(&values).max(NOISE_MIN);
    let score = if cells.len() < 2 * CELLS_MIN { LIST_SCORE_MIN } else { CELL_SCORE_MIN };
    let is_slow = |above: f64| above >= score * noise && above >= FACTOR_MIN.ln();
    let slow = cells.iter().zip(&above).filter(|(_, above)| is_slow(**above));
    let slow = slow.map(|(cell, above)| Slow { part: MatrixPart::Cell(cell.0, cell.1), factor: above.exp() });
    let largest = above.iter().fold(0.0f64, |largest, above| largest.max(above.abs()));
    found(Vec::new(), slow.collect(), largest)
}

/// A few cells: a part must be slower than everything outside of it by far.
fn by_separation(cells: &Cells, rows: usize, columns: usize) -> MatrixFinding {
    let apart = |is_own: &dyn Fn(&(usize, usize, f64)) -> bool| {
        let own = cells.iter().filter(|cell| is_own(cell)).map(|cell| cell.2).fold(f64::INFINITY, f64::min);
        let mut others: Vec<f64> = cells.iter().filter(|cell| !is_own(cell)).map(|cell| cell.2).collect();
        let most = others.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let middle = median(&mut others);
        (own - most, own - middle)
    };
    // Two cells stand out together by chance more often than three.
    let is_bare = cells.len() < 3 * rows.min(columns);
    let factor_min = if is_bare { SMALL_CELL_FACTOR_MIN } else { SMALL_SIDE_FACTOR_MIN };
    let side = |part: MatrixPart, (gap, above): (f64, f64)| {
        (gap.is_finite() && gap >= factor_min.ln()).then(|| Slow { part, factor: above.exp() })
    };
    let of_rows = (0..rows).filter_map(|at| side(MatrixPart::Row(at), apart(&|cell| cell.0 == at)));
    let of_columns = (0..columns).filter_map(|at| side(MatrixPart::Column(at), apart(&|cell| cell.1 == at)));
    let sides: Vec<Slow> = of_rows.chain(of_columns).collect();
    let one = cells.iter().filter_map(|&(row, column, _)| {
        let (gap, above) = apart(&|cell| (cell.0, cell.1) == (row, column));
        (gap >= SMALL_CELL_FACTOR_MIN.ln())
            .then(|| Slow { part: MatrixPart::Cell(row, column), factor: above.exp() })
    });
    let one: Vec<Slow> = one.collect();
    let middle = median(&mut cells.iter().map(|cell| cell.2).collect::<Vec<_>>());
    let largest = cells.iter().fold(0.0f64, |largest, cell| largest.max((cell.2 - middle).abs()));
    found(sides, one, largest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::Noise;

    /// A matrix without its diagonal where asked for, its cells 100 with this noise.
    fn matrix(side: usize, diagonal: bool, deviation: f64, seed: u64) -> Vec<Vec<Option<f64>>> {
        let mut noise = Noise(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) + 1);
        let mut cell = |row: usize, column: usize| {
            let time = 100.0 * (deviation * noise.normal()).exp();
            (diagonal || row != column).then_some(time)
        };
        (0..side).map(|row| (0..side).map(|column| cell(row, column)).collect()).collect()
    }

    fn slowed(mut times: Vec<Vec<Option<f64>>>, part: MatrixPart, factor: f64) -> Vec<Vec<Option<f64>>> {
        for (row, cells) in times.iter_mut().enumerate() {
            for (column, cell) in cells.iter_mut().enumerate() {
                let is_meant = match part {
                    MatrixPart::Row(at) => at == row,
                    MatrixPart::Column(at) => at == column,
                    MatrixPart::Cell(at, other) => (at, other) == (row, column),
                };
                *cell = cell.map(|time| if is_meant { time * factor } else { time });
            }
        }
        times
    }

    fn parts(finding: &MatrixFinding) -> Vec<MatrixPart> {
        match finding {
            MatrixFinding::Slow(slow) => slow.iter().map(|slow| slow.part).collect(),
            _ => Vec::new(),
        }
    }

    #[test]
    fn what_is_slow_is_named_and_nothing_else() {
        let slow = [MatrixPart::Cell(1, 3), MatrixPart::Row(2), MatrixPart::Column(0)];
        for (side, diagonal) in [(4, true), (5, false), (8, true), (16, false)] {
            for part in slow {
                let named = (0..50).filter(|seed| {
                    let found = find_slow(&slowed(matrix(side, diagonal, 0.05, *seed), part, 2.5));
                    parts(&found) == [part]
                });
                let named = named.count();
                assert!(named >= 48, "{side} {diagonal} {part:?}: {named}");
            }
        }
    }

    #[test]
    fn the_factor_is_the_one_that_was_put_in() {
        for part in [MatrixPart::Cell(1, 3), MatrixPart::Row(2), MatrixPart::Column(0)] {
            let found = find_slow(&slowed(matrix(8, true, 0.02, 3), part, 3.0));
            let MatrixFinding::Slow(slow) = &found else { panic!("{part:?}: {found:?}") };
            assert!((slow[0].factor / 3.0 - 1.0).abs() < 0.1, "{part:?}: {slow:?}");
        }
    }

    #[test]
    fn noise_is_not_blamed_on_anybody() {
        for deviation in [0.02, 0.25] {
            for (side, diagonal) in
                [(3, true), (3, false), (4, true), (4, false), (5, true), (5, false), (6, true), (8, false)]
            {
                let quiet = (0..200).filter(|seed| {
                    let found = find_slow(&matrix(side, diagonal, deviation, *seed));
                    matches!(found, MatrixFinding::Even(_))
                });
                let quiet = quiet.count();
                assert!(quiet >= 190, "{side} {diagonal} {deviation}: {quiet} of 200");
            }
        }
    }

    #[test]
    fn lists_of_pairs_are_compared_one_by_one() {
        let ring = |seed: u64, slow: Option<usize>| -> Vec<Vec<Option<f64>>> {
            let even = matrix(8, true, 0.05, seed);
            let cell = |row: usize, column: usize| {
                let factor = if slow == Some(row) { 3.0 } else { 1.0 };
                even[row][column].filter(|_| column == (row + 1) % 8).map(|time| time * factor)
            };
            (0..8).map(|row| (0..8).map(|column| cell(row, column)).collect()).collect()
        };
        let named =
            (0..100).filter(|seed| parts(&find_slow(&ring(*seed, Some(5)))) == [MatrixPart::Cell(5, 6)]);
        assert!(named.count() >= 95);
        let quiet = (0..200).filter(|seed| matches!(find_slow(&ring(*seed, None)), MatrixFinding::Even(_)));
        assert!(quiet.count() >= 190);
    }

    #[test]
    fn a_few_cells_tell_only_what_is_far_apart() {
        let three = |part| find_slow(&slowed(matrix(3, true, 0.05, 1), part, 3.0));
        assert_eq!(parts(&three(MatrixPart::Column(1))), [MatrixPart::Column(1)]);
        assert_eq!(parts(&three(MatrixPart::Row(0))), [MatrixPart::Row(0)]);
        assert_eq!(parts(&three(MatrixPart::Cell(2, 0))), [MatrixPart::Cell(2, 0)]);
        for side in [0, 1, 2] {
            let slow = slowed(matrix(side, true, 0.05, 1), MatrixPart::Cell(0, 1), 10.0);
            assert_eq!(find_slow(&slow), MatrixFinding::TooFew, "{side}");
        }
    }

    #[test]
    fn odd_cells_are_survived() {
        for time in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(find_slow(&[vec![Some(time); 3], vec![None; 3]]), MatrixFinding::TooFew);
        }
        let mut ragged = matrix(5, true, 0.02, 1);
        ragged[2].truncate(1);
        assert!(!matches!(find_slow(&ragged), MatrixFinding::Slow(_)));
    }
}

//! The few distribution functions that intervals and tests need.

/// Natural logarithm of the gamma function for `x > 0` (Lanczos 1964, g = 7, nine terms; about 15 digits).
fn ln_gamma(x: f64) -> f64 {
    const TERMS: [f64; 8] = [
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    let x = x - 1.0;
    let series =
        TERMS.iter().zip(1..).fold(0.999_999_999_999_809_9, |sum, (term, i)| sum + term / (x + f64::from(i)));
    let t = x + 7.5;
    0.5 * std::f64::consts::TAU.ln() + (x + 0.5) * t.ln() - t + series.ln()
}

/// Regularised incomplete beta function `I_x(a, b)` by its continued fraction (Abramowitz and Stegun 26.5.8,
/// evaluated by Lentz's method).
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(b, a, 1.0 - x);
    }
    const TINY: f64 = 1e-300;
    let front = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (-x).ln_1p()).exp() / a;
    let nonzero = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / nonzero(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = d;
    for m in 1..100_000 {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / nonzero(1.0 + even * d);
        c = nonzero(1.0 + even / c);
        fraction *= d * c;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / nonzero(1.0 + odd * d);
        c = nonzero(1.0 + odd / c);
        fraction *= d * c;
        if (d * c - 1.0).abs() < 1e-15 {
            break;
        }
    }
    front * fraction
}

/// Distribution function of Student's t with `degrees` of freedom (Abramowitz and Stegun 26.7.1).
pub(crate) fn student_t_below(t: f64, degrees: f64) -> f64 {
    let tail = 0.5 * incomplete_beta(degrees / 2.0, 0.5, degrees / (degrees + t * t));
    if t > 0.0 { 1.0 - tail } else { tail }
}

/// Half of the width of the 95 % interval of the mean of these values: Student's t; none of fewer than two.
#[must_use]
pub fn mean_half_width(values: &[f64]) -> Option<f64> {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let square: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let deviation = (square / (count - 1.0)).sqrt();
    student_t_quantile(0.975, count - 1.0).map(|t| t * deviation / count.sqrt())
}

/// The value that Student's t with `degrees` of freedom stays below with probability `probability`.
///
/// None when `probability` is not strictly between 0 and 1 or `degrees` is not a positive number. Degrees of freedom
/// need not be whole.
pub fn student_t_quantile(probability: f64, degrees: f64) -> Option<f64> {
    if !(probability > 0.0 && probability < 1.0 && degrees > 0.0 && degrees.is_finite()) {
        return None;
    }
    if probability < 0.5 {
        return student_t_quantile(1.0 - probability, degrees).map(|t| -t);
    }
    let mut high = 1.0;
    while student_t_below(high, degrees) < probability && high < 1e100 {
        high *= 2.0;
    }
    let mut low = 0.0;
    while high - low > 1e-12 * high {
        let middle = 0.5 * (low + high);
        if student_t_below(middle, degrees) < probability {
            low = middle;
        } else {
            high = middle;
        }
    }
    Some(0.5 * (low + high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn student_t_matches_the_printed_tables() {
        let rows = [
            (0.975, 1.0, 12.706_204_736),
            (0.975, 2.0, 4.302_652_730),
            (0.975, 5.0, 2.570_581_836),
            (0.975, 10.0, 2.228_138_852),
            (0.975, 30.0, 2.042_272_456),
            (0.975, 120.0, 1.979_930_405),
            (0.995, 4.0, 4.604_094_871),
            (0.9995, 9.0, 4.780_912_586),
        ];
        for (probability, degrees, expected) in rows {
            let found = student_t_quantile(probability, degrees).unwrap();
            assert!((found - expected).abs() < 1e-8 * expected, "{probability} {degrees}: {found}");
            let mirrored = student_t_quantile(1.0 - probability, degrees).unwrap();
            assert!((found + mirrored).abs() < 1e-7 * expected);
        }
    }

    #[test]
    fn half_widths_have_known_values() {
        // Standard deviation of 1 to 5: the root of 2.5.
        let half = mean_half_width(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert!((half - 2.776_445_105 * (2.5f64 / 5.0).sqrt()).abs() < 1e-8, "{half}");
        assert_eq!((mean_half_width(&[1.0]), mean_half_width(&[])), (None, None));
        assert_eq!(mean_half_width(&[2.0, 2.0]), Some(0.0));
    }

    #[test]
    fn student_t_tends_to_the_normal() {
        let normal = 1.959_963_984_540_054;
        let found = student_t_quantile(0.975, 1e7).unwrap();
        assert!((found - normal).abs() < 1e-5, "{found}");
        assert_eq!(student_t_quantile(0.5, 3.0).map(|t| t.abs() < 1e-9), Some(true));
    }

    #[test]
    fn student_t_refuses_what_has_no_quantile() {
        assert_eq!(student_t_quantile(0.0, 3.0), None);
        assert_eq!(student_t_quantile(1.0, 3.0), None);
        assert_eq!(student_t_quantile(0.5, 0.0), None);
        assert_eq!(student_t_quantile(f64::NAN, 3.0), None);
    }

    #[test]
    fn incomplete_beta_has_known_values() {
        assert!((incomplete_beta(1.0, 1.0, 0.3) - 0.3).abs() < 1e-14);
        // P(X <= 2) of a binomial with n = 10, p = 0.3 is I_0.7(8, 3).
        assert!((incomplete_beta(8.0, 3.0, 0.7) - 0.382_782_786_4).abs() < 1e-10);
        assert!((incomplete_beta(5e3, 5e3, 0.5) - 0.5).abs() < 1e-9);
    }
}

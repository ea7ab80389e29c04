//! Normal noise for tests of statistics.

/// Normal noise by the polar method (Marsaglia and Bray), the same for a seed.
pub(crate) struct Noise(pub(crate) u64);

impl Noise {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64 * 2.0 - 1.0
    }

    pub(crate) fn normal(&mut self) -> f64 {
        loop {
            let (x, y) = (self.uniform(), self.uniform());
            let radius = x * x + y * y;
            if radius > 0.0 && radius < 1.0 {
                return x * (-2.0 * radius.ln() / radius).sqrt();
            }
        }
    }
}

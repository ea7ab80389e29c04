//! Interleaving of several classes of operations in an exact ratio.

#[cfg(test)]
mod tests;

use units::ParseError;

const WHAT: &str = "a mix";

/// The most classes of one mix.
const CLASSES_MAX: usize = 64;

/// Which class of operation comes next.
///
/// After any number n of draws each class was drawn within less than one of its share n * weight / total: the ratio
/// is exact over the whole run and over every part of it, with the classes spread as evenly as they can be. The order
/// is fixed by the weights; nothing is random.
///
/// The k-th draw of a class has a window of draws in which it must fall for that to hold; of the classes whose window
/// is open, the one whose window closes first is drawn (earliest deadline first, which meets all windows of a
/// proportionate schedule on one processor: Baruah, Cohen, Plaxton and Varvel 1996).
#[derive(Clone, Debug)]
pub struct Mix {
    classes: Box<[Class]>,
    total: u64,
    /// Draws since the start of the period of `total` draws, after which the order repeats.
    drawn: u64,
    /// The only class with a weight, where there is just one.
    single: Option<usize>,
}

#[derive(Clone, Debug)]
struct Class {
    index: usize,
    weight: u64,
    /// The period divided by the weight: draws from one to the next.
    quotient: u64,
    remainder: u64,
    /// The first draw at which the window of the next one is open.
    opens: u64,
    /// The draw before which the window closes.
    closes: u64,
    /// The position of the window after it, as `whole + part / weight` draws.
    whole: u64,
    part: u64,
}

impl Class {
    fn new(index: usize, weight: u64, total: u64) -> Self {
        let (quotient, remainder) = (total / weight, total % weight);
        let mut class = Self { index, weight, quotient, remainder, opens: 0, closes: 0, whole: 0, part: 0 };
        class.advance();
        class
    }

    /// Moves on to the window of the next draw of this class.
    #[inline]
    fn advance(&mut self) {
        self.opens = self.whole;
        self.whole += self.quotient;
        self.part += self.remainder;
        if self.part >= self.weight {
            self.part -= self.weight;
            self.whole += 1;
        }
        self.closes = self.whole + u64::from(self.part > 0);
    }

    fn restart(&mut self) {
        (self.whole, self.part) = (0, 0);
        self.advance();
    }
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

impl Mix {
    /// A mix of classes with any weights; a class of weight 0 is never drawn.
    ///
    /// # Errors
    /// Refuses weights that are all 0 and more than 64 classes.
    pub fn new(weights: &[u32]) -> Result<Self, ParseError> {
        let given = || weights.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        let common = weights.iter().fold(0, |common, &weight| greatest_common_divisor(common, weight.into()));
        if common == 0 {
            return Err(ParseError::new(WHAT, given(), "at least one weight above 0"));
        }
        if weights.len() > CLASSES_MAX {
            return Err(ParseError::new(WHAT, given(), format!("at most {CLASSES_MAX} classes")));
        }
        let total = weights.iter().map(|&weight| u64::from(weight) / common).sum();
        let weighted = weights.iter().enumerate().filter(|(_, weight)| **weight > 0);
        let classes: Box<[Class]> =
            weighted.map(|(index, &weight)| Class::new(index, u64::from(weight) / common, total)).collect();
        let single = if classes.len() == 1 { Some(classes[0].index) } else { None };
        Ok(Self { classes, total, drawn: 0, single })
    }

    /// A mix of classes with shares in percent.
    ///
    /// # Errors
    /// Refuses percentages that do not add up to 100.
    pub fn from_percentages(percentages: &[u8]) -> Result<Self, ParseError> {
        let sum: u64 = percentages.iter().map(|&percent| u64::from(percent)).sum();
        if sum != 100 {
            let given = percentages.iter().map(u8::to_string).collect::<Vec<_>>().join(",");
            let accepted = format!("percentages that add up to 100 (these make {sum})");
            return Err(ParseError::new(WHAT, given, accepted));
        }
        let weights: Vec<u32> = percentages.iter().map(|&percent| u32::from(percent)).collect();
        Self::new(&weights)
    }

    /// The only class that is ever drawn, where there is just one.
    pub fn single(&self) -> Option<usize> {
        self.single
    }

    /// The next class, as its index in the list of weights.
    #[inline]
    #[expect(clippy::should_implement_trait, reason = "an endless sequence needs no Option around each draw")]
    pub fn next(&mut self) -> usize {
        match self.single {
            Some(index) => index,
            None => self.draw(),
        }
    }

    #[inline]
    fn draw(&mut self) -> usize {
        let mut chosen = 0;
        let mut earliest = u64::MAX;
        for (place, class) in self.classes.iter().enumerate() {
            let open = class.opens <= self.drawn;
            if open && class.closes < earliest {
                earliest = class.closes;
                chosen = place;
            }
        }
        let class = &mut self.classes[chosen];
        class.advance();
        let index = class.index;
        self.drawn += 1;
        if self.drawn == self.total {
            self.drawn = 0;
            self.classes.iter_mut().for_each(Class::restart);
        }
        index
    }
}

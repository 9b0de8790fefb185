//! Money in whole micro-dollars. Nothing else is money here: AWS lists, bills and budgets in US dollars.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::iter::Sum;
use std::ops::{Add, Sub};

const MICRO: i64 = 1_000_000;

/// An amount of US dollars, in whole millionths; may be below zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Usd(i64);

/// Text that is no amount.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an amount such as 12.50, with at most six decimals")]
pub struct UsdFault(String);

impl Usd {
    /// Nothing.
    pub const ZERO: Usd = Usd(0);

    /// From millionths of a dollar.
    pub const fn from_micro(micro: i64) -> Self {
        Self(micro)
    }

    /// In millionths of a dollar.
    pub const fn micro(self) -> i64 {
        self.0
    }

    /// Reads a plain decimal such as `0.8048` or `200`: no sign, no exponent, at most six decimals that are not zero.
    ///
    /// # Errors
    /// Anything else.
    pub fn parse(text: &str) -> Result<Self, UsdFault> {
        let fault = || UsdFault(text.chars().take(40).collect());
        let (whole, part) = text.trim().split_once('.').unwrap_or((text.trim(), ""));
        let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        let part = part.trim_end_matches('0');
        if whole.is_empty() || !digits(whole) || !digits(part) || part.len() > 6 {
            return Err(fault());
        }
        let micro: i64 = format!("{part:0<6}").parse().map_err(|_| fault())?;
        let whole: i64 = whole.parse().map_err(|_| fault())?;
        whole.checked_mul(MICRO).and_then(|whole| whole.checked_add(micro)).map(Self).ok_or_else(fault)
    }

    /// This price for `units` out of `per`, such as seconds out of an hour; rounded to the nearest millionth, once.
    pub fn times(self, units: i64, per: i64) -> Self {
        let (product, per) = (i128::from(self.0) * i128::from(units), i128::from(per.max(1)));
        let rounded = (product + per / 2).div_euclid(per);
        Self(i64::try_from(rounded).unwrap_or(if rounded < 0 { i64::MIN } else { i64::MAX }))
    }

    /// How many of this price the amount pays for; none where the price is not above zero.
    pub fn pays_for(self, price: Usd) -> Option<i64> {
        (price.0 > 0).then(|| self.0.max(0) / price.0)
    }

    /// As an exact decimal, without a currency: what AWS takes as an amount.
    pub fn plain(self) -> String {
        let sign = if self.0 < 0 { "-" } else { "" };
        let (whole, part) =
            (self.0.unsigned_abs() / MICRO.unsigned_abs(), self.0.unsigned_abs() % MICRO.unsigned_abs());
        let part = format!("{part:06}");
        let part = part.trim_end_matches('0');
        let part = if part.len() < 2 { format!("{part:0<2}") } else { part.to_owned() };
        format!("{sign}{whole}.{part}")
    }
}

impl fmt::Display for Usd {
    /// Cents, rounded to the nearest: `$12.35`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cents = (self.0.unsigned_abs() + 5_000) / 10_000;
        let sign = if self.0 < 0 && cents > 0 { "-" } else { "" };
        write!(f, "{sign}${}.{:02}", cents / 100, cents % 100)
    }
}

impl Add for Usd {
    type Output = Usd;
    fn add(self, other: Usd) -> Usd {
        Usd(self.0.saturating_add(other.0))
    }
}

impl Sub for Usd {
    type Output = Usd;
    fn sub(self, other: Usd) -> Usd {
        Usd(self.0.saturating_sub(other.0))
    }
}

impl Sum for Usd {
    fn sum<I: Iterator<Item = Usd>>(amounts: I) -> Usd {
        amounts.fold(Usd::ZERO, Add::add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_plain_decimals_and_nothing_else() {
        let rows =
            [("0.8048", 804_800), ("200", 200_000_000), ("20.00", 20_000_000), ("0.0057", 5_700), (" 1.5 ", 1_500_000)];
        for (text, micro) in rows {
            assert_eq!(Usd::parse(text), Ok(Usd(micro)), "{text}");
        }
        for text in ["", ".5", "-1", "+1", "1e3", "1,5", "0.1234567", "NaN", "20 EUR", "99999999999999"] {
            assert!(Usd::parse(text).is_err(), "{text}");
        }
        assert_eq!(Usd::parse("1.1234560000").map(Usd::micro), Ok(1_123_456), "zeros behind are no digits");
    }

    #[test]
    fn is_shown_in_cents_and_sent_exactly() {
        let rows = [
            (8_484_000, "$8.48", "8.484"),
            (5_000, "$0.01", "0.005"),
            (0, "$0.00", "0.00"),
            (-1_500_000, "-$1.50", "-1.50"),
        ];
        for (micro, shown, plain) in rows {
            assert_eq!((Usd(micro).to_string(), Usd(micro).plain()), (shown.to_owned(), plain.to_owned()));
        }
    }

    #[test]
    fn a_price_is_rounded_once() {
        assert_eq!(Usd(804_800).times(3600, 3600), Usd(804_800));
        assert_eq!(Usd(804_800).times(1, 3600), Usd(224), "223.6");
        assert_eq!(Usd(i64::MAX).times(10, 1), Usd(i64::MAX));
    }
}

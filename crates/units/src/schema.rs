//! How the types look in JSON and TOML.
//!
//! Sizes, rates and percentages are written as numbers in their base unit, so that a program needs no reader for
//! them. A span is written as text (`1.5s`): a bare number reads as seconds, which cannot carry every nanosecond.
//! All four are read from text or from a number.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use crate::{ByteSize, ParseError, Percent, Rate, Span};

/// Conversion from numbers, which a reader needs beyond text.
trait FromNumber: FromStr<Err = ParseError> {
    const EXPECTING: &'static str;
    fn from_whole(value: u64) -> Result<Self, ParseError>;
    fn from_fraction(value: f64) -> Result<Self, ParseError> {
        value.to_string().parse()
    }
}

impl FromNumber for ByteSize {
    const EXPECTING: &'static str = "a size such as \"4k\" or a number of bytes";
    fn from_whole(value: u64) -> Result<Self, ParseError> {
        Ok(Self(value))
    }
}

impl FromNumber for Span {
    const EXPECTING: &'static str = "a duration such as \"30s\" or a number of seconds";
    fn from_whole(value: u64) -> Result<Self, ParseError> {
        value.to_string().parse()
    }
}

impl FromNumber for Rate {
    const EXPECTING: &'static str = "a rate such as \"300k\" or a number of operations per second";
    fn from_whole(value: u64) -> Result<Self, ParseError> {
        Self::new(value as f64)
    }
    fn from_fraction(value: f64) -> Result<Self, ParseError> {
        Self::new(value)
    }
}

impl FromNumber for Percent {
    const EXPECTING: &'static str = "a percentage such as \"70%\" or a whole number from 0 to 100";
    fn from_whole(value: u64) -> Result<Self, ParseError> {
        Self::new(value)
    }
}

struct Reader<T>(std::marker::PhantomData<T>);

impl<T: FromNumber> Visitor<'_> for Reader<T> {
    type Value = T;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(T::EXPECTING)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<T, E> {
        T::from_whole(value).map_err(E::custom)
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<T, E> {
        match u64::try_from(value) {
            Ok(value) => self.visit_u64(value),
            // The text reader refuses the minus sign and names what it takes.
            Err(_) => self.visit_str(&value.to_string()),
        }
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<T, E> {
        T::from_fraction(value).map_err(E::custom)
    }
}

macro_rules! json {
    ($type:ident, $schema:tt, |$value:ident, $out:ident| $write:expr) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, $out: S) -> Result<S::Ok, S::Error> {
                let $value = self;
                $write
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
                input.deserialize_any(Reader::<Self>(std::marker::PhantomData))
            }
        }

        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    };
}

json!(ByteSize, {"type": "integer", "minimum": 0, "description": "bytes"}, |size, out| {
    out.serialize_u64(size.0)
});
json!(Span, {"type": "string", "description": "a duration such as 1.5s or 200us"}, |span, out| {
    out.collect_str(span)
});
json!(Rate, {"type": "number", "exclusiveMinimum": 0, "description": "operations per second"}, |rate, out| {
    out.serialize_f64(rate.per_second())
});
json!(Percent, {"type": "integer", "minimum": 0, "maximum": 100, "description": "percent"}, |share, out| {
    out.serialize_u8(share.get())
});

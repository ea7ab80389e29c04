//! Functions that take the place of those of the C library, by family.

#![allow(unsafe_code)]

mod attributes;
mod data;
mod descriptors;
mod directories;
mod entries;
pub(crate) mod kernel;
mod opening;
mod start;
mod stdio;
mod xattrs;

/// A function of the C library's name: `take!(Call: fn name(arguments) -> result, when condition, = body)`. The body says what this library makes of the
/// call ([`crate::enter::Taken`]); where it says none, or the condition does not hold, the C library's function is called.
macro_rules! take {
    ($call:ident: fn $name:ident($($argument:ident: $type:ty),* $(,)?) -> $result:ty, when $when:expr, = $body:expr) => {
        /// Takes the place of the C library's function of this name.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name($($argument: $type),*) -> $result {
            if $when && let Some(value) = $crate::enter::enter($crate::calls::Call::$call, || $body) {
                return value;
            }
            $crate::real::real!($name($($argument: $type),*) -> $result)
        }
    };
}

/// The same functions under several names.
macro_rules! take_all {
    ($call:ident: [$($name:ident),*] $arguments:tt -> $result:ty, when $when:expr, = $body:expr) => {
        $($crate::hooks::take_one!($call: $name $arguments -> $result, $when, $body);)*
    };
}

macro_rules! take_one {
    ($call:ident: $name:ident($($argument:ident: $type:ty),* $(,)?) -> $result:ty, $when:expr, $body:expr) => {
        $crate::hooks::take!($call: fn $name($($argument: $type),*) -> $result, when $when, = $body);
    };
}

pub(crate) use {take, take_all, take_one};

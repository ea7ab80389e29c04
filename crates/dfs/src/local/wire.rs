//! Values as bytes, little-endian.

use crate::{
    Attributes, FileKind, Handle, Inode, NewNode, OpenFlags, Owner, RenameFlags, SetAttributes, SetTime,
    StatFs, Timestamp,
};

/// A value that goes over the socket.
pub(super) trait Wire: Sized {
    fn put(&self, to: &mut Vec<u8>);
    /// Takes it from the front; none where the bytes are no such value.
    fn take(from: &mut &[u8]) -> Option<Self>;
}

macro_rules! numbers {
    ($($type:ty),*) => {$(
        impl Wire for $type {
            fn put(&self, to: &mut Vec<u8>) {
                to.extend_from_slice(&self.to_le_bytes());
            }

            fn take(from: &mut &[u8]) -> Option<Self> {
                let (first, rest) = from.split_first_chunk()?;
                *from = rest;
                Some(Self::from_le_bytes(*first))
            }
        }
    )*};
}

macro_rules! structures {
    ($($type:ident { $($field:ident),* })*) => {$(
        impl Wire for $type {
            fn put(&self, to: &mut Vec<u8>) {
                $(self.$field.put(to);)*
            }

            fn take(from: &mut &[u8]) -> Option<Self> {
                Some(Self { $($field: Wire::take(from)?),* })
            }
        }
    )*};
}

macro_rules! tuples {
    ($(($($type:ident $place:tt),*))*) => {$(
        impl<$($type: Wire),*> Wire for ($($type,)*) {
            fn put(&self, to: &mut Vec<u8>) {
                $(self.$place.put(to);)*
            }

            fn take(from: &mut &[u8]) -> Option<Self> {
                Some(($($type::take(from)?,)*))
            }
        }
    )*};
}

numbers!(u8, u16, u32, u64, i32, i64);

tuples! {
    (A 0)
    (A 0, B 1)
    (A 0, B 1, C 2)
    (A 0, B 1, C 2, D 3)
    (A 0, B 1, C 2, D 3, E 4)
}

structures! {
    Timestamp { seconds, nanoseconds }
    Owner { user, group }
    OpenFlags { read, write, append, truncate, exclusive }
    RenameFlags { no_replace, exchange }
    NewNode { kind, permissions, owner, device }
    SetAttributes { permissions, user, group, size_bytes, accessed, modified }
    StatFs { bytes, free_bytes, block_size_bytes, inodes, name_bytes_max }
    Attributes {
        inode, kind, permissions, links, owner, device, size_bytes, stored_bytes, block_size_bytes, accessed, modified,
        changed
    }
}

impl Wire for () {
    fn put(&self, _to: &mut Vec<u8>) {}

    fn take(_from: &mut &[u8]) -> Option<Self> {
        Some(())
    }
}

impl Wire for bool {
    fn put(&self, to: &mut Vec<u8>) {
        u8::from(*self).put(to);
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        u8::take(from).map(|byte| byte != 0)
    }
}

impl Wire for Inode {
    fn put(&self, to: &mut Vec<u8>) {
        self.0.put(to);
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        u64::take(from).map(Self)
    }
}

impl Wire for Handle {
    fn put(&self, to: &mut Vec<u8>) {
        self.0.put(to);
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        u64::take(from).map(Self)
    }
}

impl Wire for Vec<u8> {
    fn put(&self, to: &mut Vec<u8>) {
        put_bytes(self, to);
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        let length = u32::take(from)? as usize;
        let (first, rest) = from.split_at_checked(length)?;
        *from = rest;
        Some(first.to_vec())
    }
}

fn put_bytes(bytes: &[u8], to: &mut Vec<u8>) {
    (bytes.len() as u32).put(to);
    to.extend_from_slice(bytes);
}

impl<T: Wire> Wire for Option<T> {
    fn put(&self, to: &mut Vec<u8>) {
        self.is_some().put(to);
        if let Some(value) = self {
            value.put(to);
        }
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        if bool::take(from)? { T::take(from).map(Some) } else { Some(None) }
    }
}

const KINDS: [FileKind; 7] = [
    FileKind::File,
    FileKind::Directory,
    FileKind::Symlink,
    FileKind::Fifo,
    FileKind::Socket,
    FileKind::CharacterDevice,
    FileKind::BlockDevice,
];

impl Wire for FileKind {
    fn put(&self, to: &mut Vec<u8>) {
        // Each kind stands in the list.
        to.push(KINDS.iter().position(|kind| kind == self).unwrap_or_default() as u8);
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        KINDS.get(usize::from(u8::take(from)?)).copied()
    }
}

impl Wire for SetTime {
    fn put(&self, to: &mut Vec<u8>) {
        match self {
            Self::Now => None,
            Self::To(time) => Some(*time),
        }
        .put(to);
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        <Option<Timestamp> as Wire>::take(from).map(|time| time.map_or(Self::Now, Self::To))
    }
}

/// A list of names.
pub(super) struct Names(pub(super) Vec<Vec<u8>>);

impl Wire for Names {
    fn put(&self, to: &mut Vec<u8>) {
        (self.0.len() as u32).put(to);
        self.0.iter().for_each(|name| name.put(to));
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        let count = u32::take(from)?;
        (0..count).map(|_| Vec::take(from)).collect::<Option<_>>().map(Self)
    }
}

/// Entries of a listing: inode, kind, name, and where it goes on.
pub(super) struct Entries(pub(super) Vec<(Inode, FileKind, Vec<u8>, u64)>);

impl Wire for Entries {
    fn put(&self, to: &mut Vec<u8>) {
        (self.0.len() as u32).put(to);
        self.0.iter().for_each(|entry| entry.put(to));
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        let count = u32::take(from)?;
        (0..count).map(|_| Wire::take(from)).collect::<Option<_>>().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comes_back<T: Wire + PartialEq + std::fmt::Debug>(value: T) {
        let mut bytes = Vec::new();
        value.put(&mut bytes);
        assert_eq!(T::take(&mut bytes.as_slice()).as_ref(), Some(&value));
        let cut = &mut &bytes[..bytes.len() - 1];
        assert_eq!(T::take(cut), None, "a value that was cut is none");
    }

    #[test]
    fn values_come_back() {
        for kind in KINDS {
            comes_back(kind);
        }
        let time = Timestamp { seconds: -5, nanoseconds: 7 };
        comes_back(SetAttributes {
            permissions: Some(0o4755),
            size_bytes: Some(1 << 40),
            accessed: Some(SetTime::Now),
            modified: Some(SetTime::To(time)),
            ..SetAttributes::default()
        });
        comes_back((Inode(7), b"name".to_vec(), Handle(9), true));
    }
}

//! Content of files.

use rustix::io::Errno;
use vos::model::ObjectId;

use super::{Dfs, now};
use crate::Handle;
use crate::layout::FILE_BYTES_MAX;
use crate::table::OpenFile;

/// A part of a file under one dkey.
struct Piece {
    dkey: u64,
    /// First byte under the dkey.
    offset: u64,
    /// Where it is in the range that was asked for.
    start: usize,
    end: usize,
}

impl Dfs {
    /// The pieces of a range of a file.
    fn pieces(&self, offset: u64, bytes: usize) -> impl Iterator<Item = Piece> + use<> {
        let chunk = self.superblock.chunk_bytes;
        let mut start = 0;
        std::iter::from_fn(move || {
            let at = offset + start as u64;
            let length = ((chunk - at % chunk) as usize).min(bytes - start);
            let piece = Piece { dkey: at / chunk + 1, offset: at % chunk, start, end: start + length };
            start += length;
            (length > 0).then_some(piece)
        })
    }

    /// Size of a file in bytes: the end of what is stored.
    pub(super) fn size(&self, object: ObjectId) -> Result<u64, Errno> {
        let end = self.store.end(object)?;
        Ok(end.map_or(0, |(dkey, end)| {
            dkey.saturating_sub(1).saturating_mul(self.superblock.chunk_bytes) + end
        }))
    }

    pub(super) fn read_at(&self, handle: Handle, offset: u64, into: &mut [u8]) -> Result<usize, Errno> {
        let file = self.table.file(handle)?;
        check_file(&file, file.flags.read)?;
        let room = FILE_BYTES_MAX.checked_sub(offset).ok_or(Errno::INVAL)?;
        let length = usize::try_from(room).unwrap_or(usize::MAX).min(into.len());
        let into = &mut into[..length];
        let mut stored_end = 0;
        for piece in self.pieces(offset, length) {
            let found =
                self.store.read(file.object, piece.dkey, piece.offset, &mut into[piece.start..piece.end])?;
            if found > 0 {
                stored_end = piece.start + found;
            }
        }
        if stored_end == length {
            return Ok(length);
        }
        let size = self.size(file.object)?;
        let behind = usize::try_from(size.saturating_sub(offset)).unwrap_or(usize::MAX);
        // What was written behind the end meanwhile is not read as zeros before it.
        Ok(length.min(behind).max(stored_end))
    }

    pub(super) fn write_at(&self, handle: Handle, offset: u64, data: &[u8]) -> Result<usize, Errno> {
        let file = self.table.file(handle)?;
        check_file(&file, file.flags.write)?;
        let turn = file.flags.append.then(|| self.appending(file.inode()).lock());
        let offset = if turn.is_some() { self.size(file.object)? } else { offset };
        let end = offset.checked_add(data.len() as u64).filter(|end| *end <= FILE_BYTES_MAX);
        end.ok_or(Errno::FBIG)?;
        for piece in self.pieces(offset, data.len()) {
            self.store.write(file.object, piece.dkey, piece.offset, &data[piece.start..piece.end])?;
        }
        self.touch(file.inode(), now());
        Ok(data.len())
    }

    /// Cuts a file, or lets it grow by a hole.
    pub(super) fn truncate(&self, object: ObjectId, bytes: u64) -> Result<(), Errno> {
        if bytes > FILE_BYTES_MAX {
            return Err(Errno::FBIG);
        }
        let size = self.size(object)?;
        if bytes > size {
            return self.end_at(object, bytes);
        }
        if bytes < size && bytes > 0 {
            self.keep_end(object, bytes)?;
        }
        self.punch(object, bytes, size - bytes)
    }

    /// The last byte of a file becomes a zero that is stored: so its end is known.
    fn end_at(&self, object: ObjectId, bytes: u64) -> Result<(), Errno> {
        self.pieces(bytes - 1, 1)
            .try_for_each(|piece| self.store.write(object, piece.dkey, piece.offset, &[0]))
    }

    /// The last byte of a file is stored, whatever it is.
    fn keep_end(&self, object: ObjectId, bytes: u64) -> Result<(), Errno> {
        for piece in self.pieces(bytes - 1, 1) {
            if self.store.read(object, piece.dkey, piece.offset, &mut [0])? == 0 {
                self.store.write(object, piece.dkey, piece.offset, &[0])?;
            }
        }
        Ok(())
    }

    /// Makes a hole, from the end on.
    fn punch(&self, object: ObjectId, offset: u64, bytes: u64) -> Result<(), Errno> {
        let chunk = self.superblock.chunk_bytes;
        let end = offset + bytes;
        for number in (offset / chunk..end.div_ceil(chunk)).rev() {
            let (first, behind) = (number * chunk, (number + 1) * chunk);
            let (low, high) = (offset.max(first), end.min(behind));
            let is_part = low > first || high < behind;
            if low < high {
                self.store.punch(object, number + 1, is_part.then_some((low - first, high - low)))?;
            }
        }
        Ok(())
    }

    pub(super) fn allocate_range(
        &self,
        handle: Handle,
        (offset, bytes): (u64, u64),
        hole: bool,
        keep_size: bool,
    ) -> Result<(), Errno> {
        let file = self.table.file(handle)?;
        check_file(&file, file.flags.write)?;
        let end = offset.checked_add(bytes).filter(|end| *end <= FILE_BYTES_MAX).ok_or(Errno::FBIG)?;
        if bytes == 0 {
            return Err(Errno::INVAL);
        }
        let size = self.size(file.object)?;
        match (hole, keep_size) {
            (true, false) => return Err(Errno::OPNOTSUPP),
            (true, true) if offset < size => {
                let mut end = end.min(size);
                if end == size {
                    self.end_at(file.object, size)?;
                    end -= 1;
                }
                self.punch(file.object, offset, end - offset)?;
            }
            (false, false) if end > size => self.end_at(file.object, end)?,
            _ => return Ok(()),
        }
        self.touch(file.inode(), now());
        Ok(())
    }

    pub(super) fn seek_from(&self, handle: Handle, offset: u64, hole: bool) -> Result<u64, Errno> {
        let file = self.table.file(handle)?;
        check_file(&file, true)?;
        let size = self.size(file.object)?;
        if offset >= size {
            return Err(Errno::NXIO);
        }
        let chunk = self.superblock.chunk_bytes;
        let mut at = offset;
        while at < size {
            let (number, within) = (at / chunk, at % chunk);
            let extents = self.store.extents(file.object, number + 1, within)?;
            let mut position = within;
            for (first, bytes) in &extents {
                if *first > position {
                    if hole {
                        return Ok(number * chunk + position);
                    }
                    return Ok(number * chunk + first);
                }
                if !hole {
                    return Ok(number * chunk + position);
                }
                position = first + bytes;
            }
            if extents.is_empty() {
                if hole {
                    return Ok(at);
                }
                position = chunk;
            }
            // Others may follow those that were listed.
            at = number * chunk + position;
        }
        if hole { Ok(size) } else { Err(Errno::NXIO) }
    }

    pub(super) fn sync_file(&self, handle: Handle, data_only: bool) -> Result<(), Errno> {
        let file = self.table.file(handle)?;
        if !data_only {
            self.tell(file.inode())?;
        }
        self.store.sync()
    }
}

/// Refuses what is no file, or not open so.
fn check_file(file: &OpenFile, is_open_so: bool) -> Result<(), Errno> {
    match (file.kind, is_open_so) {
        (crate::FileKind::Directory, _) => Err(Errno::ISDIR),
        (_, false) => Err(Errno::BADF),
        _ => Ok(()),
    }
}

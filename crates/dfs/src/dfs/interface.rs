//! The trait of a file system on the one over a store.

use std::sync::atomic::AtomicBool;

use rustix::io::Errno;

use super::Dfs;
use super::names::Fresh;
use crate::layout::NAME_BYTES_MAX;
use crate::{
    Attributes, DirectoryEntry, ExpectedChanges, FileKind, FileSystem, Handle, Inode, NewNode, OpenFlags,
    Owner, RenameFlags, SetAttributes, StatFs,
};

impl FileSystem for Dfs {
    fn stat_fs(&self) -> Result<StatFs, Errno> {
        let space = self.store.space()?;
        Ok(StatFs {
            bytes: space.bytes,
            free_bytes: space.free_bytes,
            block_size_bytes: self.superblock.chunk_bytes as u32,
            inodes: space.keys,
            name_bytes_max: NAME_BYTES_MAX as u32,
        })
    }

    fn look_up(&self, parent: Inode, name: &[u8]) -> Result<Attributes, Errno> {
        self.find(parent, name)
    }

    fn forget(&self, inode: Inode, references: u64) {
        self.unrefer(inode, references);
    }

    fn attributes(&self, inode: Inode) -> Result<Attributes, Errno> {
        self.attributes_now(inode)
    }

    fn stat(&self, parent: Inode, name: &[u8]) -> Result<Attributes, Errno> {
        self.stat_entry(parent, name)
    }

    fn set_attributes(&self, inode: Inode, to: &SetAttributes) -> Result<Attributes, Errno> {
        self.set(inode, to)
    }

    fn make_directory(
        &self,
        parent: Inode,
        name: &[u8],
        permissions: u16,
        owner: Owner,
    ) -> Result<Attributes, Errno> {
        self.make(
            parent,
            name,
            &Fresh { kind: FileKind::Directory, permissions, owner, device: 0, target: &[] },
        )
    }

    fn make_node(&self, parent: Inode, name: &[u8], node: &NewNode) -> Result<Attributes, Errno> {
        let NewNode { kind, permissions, owner, device } = *node;
        if matches!(kind, FileKind::Directory | FileKind::Symlink) {
            return Err(Errno::INVAL);
        }
        self.make(parent, name, &Fresh { kind, permissions, owner, device, target: &[] })
    }

    fn make_symlink(
        &self,
        parent: Inode,
        name: &[u8],
        target: &[u8],
        owner: Owner,
    ) -> Result<Attributes, Errno> {
        let (kind, permissions) = (FileKind::Symlink, 0o777);
        self.make(parent, name, &Fresh { kind, permissions, owner, device: 0, target })
    }

    fn link(&self, _: Inode, _: Inode, _: &[u8]) -> Result<Attributes, Errno> {
        Err(Errno::PERM)
    }

    fn read_link(&self, inode: Inode) -> Result<Vec<u8>, Errno> {
        self.target_of(inode)
    }

    fn create(
        &self,
        parent: Inode,
        name: &[u8],
        permissions: u16,
        owner: Owner,
        flags: OpenFlags,
    ) -> Result<(Attributes, Handle), Errno> {
        let fresh = Fresh { kind: FileKind::File, permissions, owner, device: 0, target: &[] };
        self.create_file(parent, name, &fresh, flags)
    }

    fn open(&self, inode: Inode, flags: OpenFlags) -> Result<Handle, Errno> {
        self.open_inode(inode, flags)
    }

    fn read(&self, handle: Handle, offset_bytes: u64, into: &mut [u8]) -> Result<usize, Errno> {
        self.read_at(handle, offset_bytes, into)
    }

    fn write(&self, handle: Handle, offset_bytes: u64, data: &[u8]) -> Result<usize, Errno> {
        self.write_at(handle, offset_bytes, data)
    }

    fn flush(&self, handle: Handle) -> Result<(), Errno> {
        let file = self.table.file(handle)?;
        self.tell(file.inode())
    }

    fn sync(&self, handle: Handle, data_only: bool) -> Result<(), Errno> {
        self.sync_file(handle, data_only)
    }

    fn allocate(
        &self,
        handle: Handle,
        offset_bytes: u64,
        bytes: u64,
        hole: bool,
        keep_size: bool,
    ) -> Result<(), Errno> {
        self.allocate_range(handle, (offset_bytes, bytes), hole, keep_size)
    }

    fn seek(&self, handle: Handle, offset_bytes: u64, hole: bool) -> Result<u64, Errno> {
        self.seek_from(handle, offset_bytes, hole)
    }

    fn release(&self, handle: Handle) -> Result<(), Errno> {
        self.close_handle(handle)
    }

    fn unlink(&self, parent: Inode, name: &[u8]) -> Result<(), Errno> {
        self.remove_file(parent, name)
    }

    fn remove_directory(&self, parent: Inode, name: &[u8]) -> Result<(), Errno> {
        self.remove_empty(parent, name)
    }

    fn rename(
        &self,
        parent: Inode,
        name: &[u8],
        new_parent: Inode,
        new_name: &[u8],
        flags: RenameFlags,
    ) -> Result<(), Errno> {
        self.rename_entry((parent, name), (new_parent, new_name), flags)
    }

    fn list(
        &self,
        inode: Inode,
        after: u64,
        entry: &mut dyn FnMut(DirectoryEntry<'_>) -> bool,
    ) -> Result<(), Errno> {
        self.list_from(inode, after, entry)
    }

    fn xattr(&self, inode: Inode, name: &[u8]) -> Result<Vec<u8>, Errno> {
        self.read_xattr(inode, name)
    }

    fn set_xattr(
        &self,
        inode: Inode,
        name: &[u8],
        value: &[u8],
        create: bool,
        replace: bool,
    ) -> Result<(), Errno> {
        self.write_xattr(inode, name, value, (create, replace))
    }

    fn list_xattrs(&self, inode: Inode) -> Result<Vec<Vec<u8>>, Errno> {
        self.xattr_names(inode)
    }

    fn remove_xattr(&self, inode: Inode, name: &[u8]) -> Result<(), Errno> {
        self.drop_xattr(inode, name)
    }

    fn stock(&self, changes: &ExpectedChanges, stop: &AtomicBool) {
        // A write goes to the store in parts of a chunk.
        let parts = changes.write_bytes.div_ceil(self.superblock.chunk_bytes).max(1);
        let changes = ExpectedChanges {
            writes: changes.writes.saturating_mul(parts),
            write_bytes: changes.write_bytes.min(self.superblock.chunk_bytes),
            ..*changes
        };
        self.store.stock(&changes, stop);
    }

    fn grown_bytes(&self) -> Option<u64> {
        self.store.grown_bytes()
    }

    fn drop_cache(&self) -> Result<(), Errno> {
        self.store.drop_cache()
    }

    fn take_findings(&self) -> Vec<String> {
        let mut all = self.store.take_findings();
        all.extend(self.damaged.lock().take());
        all
    }
}

//! Random work on a file of a mount and on a plain one, which must stay the same: what fsx does.

#![allow(unsafe_code)]

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use units::random::Random;

/// Longest file, in bytes: several chunks of an object.
const BYTES_MAX: u64 = 3 << 20;
/// Longest transfer, in bytes.
const TRANSFER_MAX: u64 = 300_000;

/// Both files, and the random numbers that choose.
pub(crate) struct Pair {
    paths: [PathBuf; 2],
    files: [File; 2],
    random: Random,
    log: Vec<String>,
}

fn open(path: &Path) -> File {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).unwrap()
}

impl Pair {
    /// New files in both directories.
    pub(crate) fn new(mount: &Path, plain: &Path, seed: u64) -> Self {
        let paths = [mount, plain].map(|directory| directory.join(format!("random-{seed}")));
        let files = [open(&paths[0]), open(&paths[1])];
        Self { paths, files, random: Random::new(seed), log: Vec::new() }
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.random.below(bound.max(1))
    }

    fn data(&mut self) -> Vec<u8> {
        let length = 1 + self.below(TRANSFER_MAX);
        let first = self.below(251);
        (0..length).map(|at| ((first + at * 7) % 253 + 1) as u8).collect()
    }

    fn both<T: PartialEq + std::fmt::Debug>(
        &mut self,
        word: String,
        mut work: impl FnMut(&mut File) -> T,
    ) -> T {
        self.log.push(word);
        let [one, other] = &mut self.files;
        let (seen, expected) = (work(one), work(other));
        assert!(seen == expected, "{:?}", self.log.iter().rev().take(20).collect::<Vec<_>>());
        seen
    }

    /// One step.
    fn step(&mut self) {
        let offset = self.below(BYTES_MAX);
        let length = 1 + self.below(TRANSFER_MAX);
        match self.below(16) {
            0..=2 => {
                let data = self.data();
                self.both(format!("pwrite {offset} {}", data.len()), |file| {
                    file.write_all_at(&data, offset).unwrap();
                });
            }
            3 => {
                let data = self.data();
                self.both(format!("seek {offset}, write {}", data.len()), |file| {
                    file.seek(SeekFrom::Start(offset)).unwrap();
                    file.write_all(&data).unwrap();
                    file.stream_position().unwrap()
                });
            }
            4 => {
                let data = self.data();
                self.both(format!("seek end, write {}", data.len()), |file| {
                    let end = file.seek(SeekFrom::End(0)).unwrap();
                    if end < BYTES_MAX {
                        file.write_all(&data).unwrap();
                    }
                    (end, file.stream_position().unwrap())
                });
            }
            5..=7 => {
                self.both(format!("pread {offset} {length}"), |file| {
                    let mut data = vec![0; length as usize];
                    let count = file.read_at(&mut data, offset).unwrap();
                    data.truncate(count);
                    data
                });
            }
            8 => {
                self.both(format!("seek {offset}, read {length}"), |file| {
                    let mut data = Vec::new();
                    file.seek(SeekFrom::Start(offset)).unwrap();
                    Read::by_ref(file).take(length).read_to_end(&mut data).unwrap();
                    (data, file.stream_position().unwrap())
                });
            }
            9 => {
                self.both(format!("truncate {offset}"), |file| file.set_len(offset).unwrap());
            }
            10 => self.punch(offset, length),
            11 => {
                self.both(format!("allocate {offset} {length}"), |file| allocate(file, 0, offset, length));
            }
            12 => self.both("sync".to_owned(), |file| file.sync_all().unwrap()),
            13 => self.reopen(),
            14 => self.map(offset, length),
            _ => {
                self.both("size".to_owned(), |file| file.metadata().unwrap().len());
            }
        }
    }

    fn punch(&mut self, offset: u64, length: u64) {
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        self.both(format!("punch {offset} {length}"), |file| allocate(file, mode, offset, length));
    }

    fn reopen(&mut self) {
        self.log.push("reopen".to_owned());
        self.files = [open(&self.paths[0]), open(&self.paths[1])];
    }

    /// Writes through a shared mapping.
    fn map(&mut self, offset: u64, length: u64) {
        let value = (self.below(250) + 1) as u8;
        self.both(format!("map {offset} {length} {value}"), |file| {
            let size = file.metadata().unwrap().len();
            let start = offset.min(size) / 4096 * 4096;
            let length = length.min(size - start) as usize;
            if length == 0 {
                return;
            }
            let access = libc::PROT_READ | libc::PROT_WRITE;
            let (null, shared) = (std::ptr::null_mut(), libc::MAP_SHARED);
            // SAFETY: the mapping lies within the file, which nobody cuts while it is there.
            unsafe {
                let mapped = libc::mmap(null, length, access, shared, file.as_raw_fd(), start as i64);
                assert_ne!(mapped, libc::MAP_FAILED, "{}", std::io::Error::last_os_error());
                std::slice::from_raw_parts_mut(mapped.cast::<u8>(), length)
                    .iter_mut()
                    .step_by(3)
                    .for_each(|to| *to = value);
                assert_eq!(libc::msync(mapped, length, libc::MS_SYNC), 0);
                assert_eq!(libc::munmap(mapped, length), 0);
            }
        });
    }

    /// Many steps, and both files as a whole at the end.
    pub(crate) fn run(mut self, steps: usize) {
        for _ in 0..steps {
            self.step();
        }
        self.reopen();
        self.both("all".to_owned(), |file| {
            let mut all = Vec::new();
            file.read_to_end(&mut all).unwrap();
            all
        });
    }
}

fn allocate(file: &File, mode: i32, offset: u64, length: u64) -> Option<i32> {
    // SAFETY: fallocate takes no memory.
    let done = unsafe { libc::fallocate(file.as_raw_fd(), mode, offset as i64, length as i64) };
    (done != 0).then(|| std::io::Error::last_os_error().raw_os_error().unwrap_or(0))
}

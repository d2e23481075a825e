//! Reads what `strace` saw: every call that changed a file of the store, every flush, every acknowledgement.

use std::collections::HashMap;
use std::path::Path;
use std::process::{Command, Stdio};

/// What is looked at. A call of this list that touches the store in a way that [`read`] does not know stops the
/// test, so that nothing is overlooked. `?` because not every processor has every call.
const CALLS: &str = "trace=?open,openat,?openat2,?creat,write,writev,pwrite64,pwritev,pwritev2,ftruncate,truncate,\
fallocate,fsync,fdatasync,sync_file_range,?unlink,unlinkat,?rename,?renameat,renameat2,?link,linkat,mmap,\
copy_file_range,sendfile,splice";

/// Beginnings of an acknowledgement, which the child writes to its standard error in one call.
const ACK: &str = "ack ";
/// The number of the standard error.
const SAID: &str = "2";
/// `O_CREAT` and `O_TRUNC`.
const CREATE: i64 = 0o100;
const EMPTY: i64 = 0o1000;
/// `PROT_WRITE` and `MAP_SHARED`: memory that becomes a file without any call.
const WRITABLE: i64 = 2;
const SHARED: i64 = 1;

/// One thing that happened, in the order in which it was over. Files are named without their folder.
#[derive(Debug, PartialEq, Eq)]
pub enum Event {
    /// The name may be new.
    Opened(String),
    Wrote {
        name: String,
        at: usize,
        bytes: Vec<u8>,
    },
    Resized {
        name: String,
        len: usize,
    },
    /// Everything that was over before this many events is on the disk.
    Flushed {
        name: String,
        covers: usize,
    },
    /// The same for names that came and went.
    FlushedFolder {
        covers: usize,
    },
    Unlinked(String),
    /// Counts from the moment when it began to be said.
    Acknowledged(String),
}

/// Whether programs can be traced here. Says so when not.
pub fn can_trace() -> bool {
    let tried = Command::new("strace")
        .args(["-f", "--seccomp-bpf", "-e", "trace=fsync", "-o", "/dev/null", "true"])
        .stderr(Stdio::null())
        .status();
    let works = tried.is_ok_and(|status| status.success());
    if !works {
        println!("SKIPPED: no strace here, or it may not trace; nothing is known about power cuts");
    }
    works
}

/// Runs the test `child` of this program, which finds `argument`, and returns what it did to `folder`.
pub fn record(child: &str, argument: &str, folder: &Path, name: &str) -> Vec<Event> {
    let to = tempfile::NamedTempFile::new().unwrap();
    let status = Command::new("strace")
        .args(["-f", "--seccomp-bpf", "-y", "-X", "raw", "-xx", "-s", "1048576", "-e", CALLS, "-o"])
        .arg(to.path())
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", child, "--nocapture", "--quiet"])
        .env(crate::support::CHILD, argument)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    assert!(status.unwrap().success(), "the traced program failed");
    read(&std::fs::read_to_string(to.path()).unwrap(), folder, name)
}

/// The events of a trace that concern the store `name` in `folder`.
pub fn read(text: &str, folder: &Path, name: &str) -> Vec<Event> {
    let mut reader = Reader { folder: folder.to_str().unwrap(), store: name, events: Vec::new() };
    let mut open: HashMap<&str, (String, usize)> = HashMap::new();
    for line in text.lines() {
        let (process, call) = line.split_once(' ').unwrap();
        let call = call.trim_start();
        if let Some(begun) = call.strip_suffix(" <unfinished ...>") {
            reader.begun(begun);
            open.insert(process, (begun.to_owned(), reader.events.len()));
        } else if let Some(rest) = call.strip_prefix("<... ") {
            let (begun, covers) = open.remove(process).unwrap();
            let rest = rest.split_once(" resumed>").unwrap().1;
            reader.over(&format!("{begun}{rest}"), covers);
        } else {
            reader.begun(call);
            reader.over(call, reader.events.len());
        }
    }
    reader.events
}

struct Reader<'a> {
    folder: &'a str,
    store: &'a str,
    events: Vec<Event>,
}

impl Reader<'_> {
    fn begun(&mut self, call: &str) {
        let Some(args) = call.strip_prefix("write(") else { return };
        if args.split('<').next() != Some(SAID) {
            return;
        }
        let said = String::from_utf8_lossy(&quoted(args)).into_owned();
        if let Some(what) = said.strip_prefix(ACK) {
            self.events.push(Event::Acknowledged(what.trim_end().to_owned()));
        }
    }

    /// A call that is over; `covers` is how many events there were when it began.
    fn over(&mut self, call: &str, covers: usize) {
        let Some((call, result)) = call.rsplit_once(" = ") else { return };
        let Some((verb, args)) = call.split_once('(') else { return };
        if result.starts_with("-1") || result.starts_with('?') {
            return;
        }
        let args = args.trim_end().strip_suffix(')').unwrap();
        match verb {
            "open" | "openat" | "creat" | "openat2" => self.opened(verb, args, result),
            "unlink" | "unlinkat" => self.named(&path(&quoted(args)), Event::Unlinked),
            "fsync" | "fdatasync" if of(args) == self.folder => self.events.push(Event::FlushedFolder { covers }),
            "fsync" | "fdatasync" => self.named(&of(args), |name| Event::Flushed { name, covers }),
            "ftruncate" => self.named(&of(args), |name| Event::Resized { name, len: number(args, 1) as usize }),
            "pwrite64" => {
                let (bytes, (_, rest)) = (quoted(args), args.rsplit_once('"').unwrap());
                self.named(&of(args), |name| {
                    assert_eq!(bytes.len().to_string(), result, "a short write, or a trace that is cut off");
                    Event::Wrote { name, at: number(rest, 2) as usize, bytes }
                });
            }
            "mmap" if number(args, 2) & WRITABLE == 0 || number(args, 3) & SHARED == 0 => {}
            _ => self.unknown(verb, args),
        }
    }

    fn opened(&mut self, verb: &str, args: &str, result: &str) {
        let path = of(result);
        if self.name(&path).is_none() {
            return;
        }
        assert_eq!(verb, "openat", "{path}");
        let flags = number(args, 2);
        assert_eq!(flags & EMPTY, 0, "{path} is emptied when it is opened");
        if flags & CREATE != 0 {
            self.named(&path, Event::Opened);
        }
    }

    fn named(&mut self, path: &str, event: impl FnOnce(String) -> Event) {
        if let Some(name) = self.name(path) {
            self.events.push(event(name));
        }
    }

    /// The name of a file that has to survive. What SQLite maps, locks and the socket are made anew at any time.
    fn name(&self, path: &str) -> Option<String> {
        let name = path.strip_prefix(self.folder)?.strip_prefix('/')?;
        match name.strip_prefix(self.store) {
            Some("" | "-wal" | "-journal") => Some(name.to_owned()),
            Some("-shm" | ".lock" | ".sock" | ".turn") => None,
            _ => panic!("what is {path}?"),
        }
    }

    fn unknown(&self, verb: &str, args: &str) {
        let strings = args.split(['<', '>', '"']).map(|text| path(&unhex(text)));
        let touched: Vec<_> = strings.filter(|path| path.starts_with(self.folder) && !path.ends_with("-shm")).collect();
        assert!(touched.is_empty(), "{verb} of {touched:?} is not understood");
    }
}

/// The path behind the first file number.
fn of(args: &str) -> String {
    let Some((_, rest)) = args.split_once('<') else { return String::new() };
    let Some((inside, after)) = rest.split_once('>') else { return String::new() };
    let path = path(&unhex(inside));
    // A file without a name does not come back.
    if after.starts_with("(deleted)") || path.ends_with(" (deleted)") { String::new() } else { path }
}

fn path(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The bytes of the first string.
fn quoted(args: &str) -> Vec<u8> {
    args.split('"').nth(1).map_or_else(Vec::new, unhex)
}

/// Strings are written as `\x00\x01`, so that none holds a character that means something.
fn unhex(text: &str) -> Vec<u8> {
    let digit = |byte: u8| (byte as char).to_digit(16).unwrap_or_else(|| panic!("{text:.200} is not escaped")) as u8;
    let escaped = text.as_bytes().chunks_exact(4).take_while(|escape| escape.starts_with(b"\\x"));
    escaped.map(|escape| digit(escape[2]) << 4 | digit(escape[3])).collect()
}

/// The argument at `index`, which is a number.
fn number(args: &str, index: usize) -> i64 {
    let text = args.split(", ").nth(index).unwrap_or_default();
    let parsed = match (text.strip_prefix("0x"), text.strip_prefix('0')) {
        (Some(hex), _) => i64::from_str_radix(hex, 16),
        (None, Some(octal)) if !octal.is_empty() => i64::from_str_radix(octal, 8),
        (None, _) => text.parse(),
    };
    parsed.unwrap_or_else(|_| panic!("argument {index} of {:.200} is no number", args))
}

#[test]
fn calls_of_several_threads_are_put_together() {
    let hex = |text: &str| text.bytes().map(|byte| format!("\\x{byte:02x}")).collect::<String>();
    let (wal, other, shm) = (hex("/f/a.db-wal"), hex("/g/a.db-wal"), hex("/f/a.db-shm"));
    let text = [
        format!("7  openat(-100</>, \"{wal}\", 0xa0042, 0644) = 3<{wal}>"),
        format!("7  openat(-100</>, \"{wal}\", 0xa0042, 0644) = -1 ENOENT (No such file or directory)"),
        format!("7  fsync(3<{wal}> <unfinished ...>"),
        format!("8  pwrite64(4<{wal}>, \"{}\", 3, 010) = 3", hex("a,b")),
        format!("9  write(2</dev/null>, \"{}\", 10 <unfinished ...>", hex("ack one 1\n")),
        "7  <... fsync resumed>) = 0".to_owned(),
        "9  <... write resumed>) = 10".to_owned(),
        format!("8  ftruncate(4<{wal}>, 4) = 0"),
        format!("8  pwrite64(4<{other}>, \"{wal}\", 11, 0) = 11"),
        format!("8  mmap(NULL, 32768, 0x3, 0x1, 5<{shm}>, 0) = 0x7f0000000000"),
        format!("8  fdatasync(6<{}>) = 0", hex("/f")),
        format!("8  unlink(\"{wal}\") = 0"),
        "8  +++ exited with 0 +++".to_owned(),
    ];
    let name = || "a.db-wal".to_owned();
    let expected = [
        Event::Opened(name()),
        Event::Wrote { name: name(), at: 8, bytes: b"a,b".to_vec() },
        Event::Acknowledged("one 1".to_owned()),
        Event::Flushed { name: name(), covers: 1 },
        Event::Resized { name: name(), len: 4 },
        Event::FlushedFolder { covers: 5 },
        Event::Unlinked(name()),
    ];
    assert_eq!(read(&text.join("\n"), Path::new("/f"), "a.db"), expected);
}

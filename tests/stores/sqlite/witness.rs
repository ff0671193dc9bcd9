//! Files that are older states of themselves, on the file systems that keep files here.
//!
//! Each row of the table at the head of `witness.rs` and each tool that puts a file back has a
//! test. What is granted before and after is held against each other: no tick twice.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ringflake::Clock;
use ringflake::lease::conformance::GrantedTicks;
use ringflake::lease::{Fence, Grant, LeaseStore, Namespace, Renew, SqliteStore, StoreError};
use ringflake_kit::tls::allow;
use ringflake_kit::{cp, printed, server};
use tempfile::TempDir;

use super::files::{as_member, without_privilege};
use super::{Site, child, given_path};
use crate::kit::{self, FAILOVER, HORIZON, copied, fenced, unavailable};

/// A file system in a file, mounted until this is dropped.
struct Mounted {
    home: TempDir,
}

impl Mounted {
    /// None, with a message, where this kernel or user can't have it.
    fn new(kind: &str, options: &[&str]) -> Option<Self> {
        let home = tempfile::tempdir().unwrap();
        let image = home.path().join("image");
        let file = fs::File::create(&image).unwrap();
        file.set_len(400 << 20).unwrap();
        fs::create_dir(home.path().join("at")).unwrap();
        let this = Self { home };
        let made = run(&format!("mkfs.{kind}"), |it| it.args(options).arg(&image));
        let at = this.at();
        let mounted = made && run("mount", |it| it.args(["-o", "loop"]).arg(&image).arg(at));
        let lack = format!("{kind} {options:?} can't be made and mounted here");
        server::has(mounted, &lack).then_some(this)
    }

    /// The same directory under another path.
    fn bind(directory: &Path) -> Option<Self> {
        let this = Self {
            home: tempfile::tempdir().unwrap(),
        };
        fs::create_dir(this.at()).unwrap();
        let mounted = run("mount", |it| it.arg("--bind").arg(directory).arg(this.at()));
        server::has(mounted, "only root can mount").then_some(this)
    }

    fn at(&self) -> PathBuf {
        self.home.path().join("at")
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // The store keeps a descriptor of a file that it has made until the process ends.
        run("umount", |it| it.arg("-l").arg(self.at()));
    }
}

fn run(program: &str, arguments: impl FnOnce(&mut Command) -> &mut Command) -> bool {
    let mut command = Command::new(program);
    let command = arguments(&mut command);
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

fn must_run(program: &str, arguments: &[&str]) {
    printed(Command::new(program).args(arguments));
}

const FILE: &str = "leases.db";

const SHARED_MEMORY: &str = "/dev/shm";

/// A directory with a store, and all that was granted of it.
struct Watched {
    site: Site,
    space: Namespace,
    given: GrantedTicks,
}

impl Watched {
    fn new(home: &Path) -> Self {
        let data = home.join("data");
        fs::create_dir(&data).unwrap();
        let this = Self::at(Site::new(&data));
        this.store().init(&this.space, &this.site.init()).unwrap();
        this
    }

    fn at(site: Site) -> Self {
        Self {
            site,
            // Two blocks, so that the same ones come back.
            space: kit::space("orders").with_block_bits(16).unwrap(),
            given: GrantedTicks::default(),
        }
    }

    fn store(&self) -> SqliteStore {
        self.site.store(FILE)
    }

    fn try_acquire(&self, store: &mut SqliteStore) -> Result<Grant, StoreError> {
        self.site.acquire(store, &self.space, 50)
    }

    fn history_lost(&self) -> bool {
        let report = self.store().check(&self.space, self.site.clock.unix_ms());
        report.unwrap().history_lost()
    }

    /// Grants that nobody has had before, as somebody who waits for the floor gets them.
    fn grant(&mut self, store: &mut SqliteStore, count: u32) -> Vec<Grant> {
        let mut grants = Vec::new();
        for _ in 0..count {
            let grant = match self.try_acquire(store) {
                Err(StoreError::FloorAhead { .. } | StoreError::Exhausted { .. }) => {
                    self.site.pass(FAILOVER + 2);
                    self.try_acquire(store)
                }
                answer => answer,
            };
            let grant = grant.unwrap();
            self.given.add(&grant);
            store
                .release(&self.space, grant.block, grant.epoch)
                .unwrap();
            grants.push(grant);
        }
        grants
    }

    /// Puts the directory back by `put_back`, which is given a backup made by `cp -a`, and goes
    /// on.
    fn survives(self, put_back: impl FnOnce(&str, &str)) {
        let data = &self.site.directory;
        let [data, backup] = [data.clone(), data.with_extension("bak")];
        let [data, backup] = [&data, &backup].map(|path| path.to_str().unwrap());
        self.survives_loss(|| cp("-a", data, backup), || put_back(backup, data));
    }

    /// Loses what was granted between the two, and goes on.
    fn survives_loss(mut self, back_up: impl FnOnce(), put_back: impl FnOnce()) {
        let mut store = self.store();
        let kept = self.grant(&mut store, 2).remove(0);
        back_up();
        let lost = self.grant(&mut store, 4).pop().unwrap();
        put_back();

        // Noticed before anything is granted or renewed, also by a store that was open.
        let renew = Renew::new(&kept, kept.ticks.end + 5, self.site.clock.unix_ms());
        assert_eq!(fenced(store.renew(&self.space, &renew)), Fence::Incarnation);
        assert!(self.history_lost());
        assert!(floor_ahead(self.try_acquire(&mut self.store())) > lost.ticks.end);
        self.grant(&mut store, 4);
        // Noticed once.
        assert!(!self.history_lost());
    }
}

#[track_caller]
fn floor_ahead(answer: Result<Grant, StoreError>) -> u64 {
    match answer {
        Err(StoreError::FloorAhead { floor, .. }) => floor,
        other => panic!("{other:?}, not a floor that lies ahead"),
    }
}

fn on_each(test: impl Fn(&Path)) {
    // The second one at best effort.
    for parent in [env!("CARGO_TARGET_TMPDIR"), SHARED_MEMORY] {
        test(TempDir::new_in(parent).unwrap().path());
    }
    for (kind, options) in [
        ("ext4", &["-q", "-I", "128"][..]),
        ("ext4", &["-q", "-I", "256"]),
        ("xfs", &["-q"]),
        ("btrfs", &["-q"]),
    ] {
        if let Some(mounted) = Mounted::new(kind, options) {
            test(&mounted.at());
        }
    }
}

#[test]
fn files_put_back_with_their_attributes_grant_nothing_twice() {
    on_each(|home| {
        Watched::new(home).survives(|backup, data| {
            cp("-a", format!("{backup}/."), format!("{data}/"));
        });
    });
}

#[test]
fn a_file_written_over_in_place_grants_nothing_twice() {
    on_each(|home| {
        Watched::new(home).survives(|backup, data| {
            let [from, to] = [backup, data].map(|path| format!("{path}/leases.db"));
            cp("", from, to);
        });
    });
}

#[test]
fn a_file_put_back_by_rsync_grants_nothing_twice() {
    if server::find("rsync", "rsync").is_none() {
        return;
    }
    on_each(|home| {
        Watched::new(home).survives(|backup, data| {
            let [from, to] = [backup, data].map(|path| format!("{path}/"));
            must_run("rsync", &["-aX", "--inplace", "--checksum", &from, &to]);
        });
    });
}

#[test]
fn a_file_with_many_namespaces_is_noticed_as_any_other() {
    on_each(|home| {
        let watched = Watched::new(home);
        for number in 0..150 {
            let space = kit::space(&format!("a-namespace-with-quite-a-long-name-{number}"));
            watched.store().init(&space, &watched.site.init()).unwrap();
        }
        watched.survives(|backup, data| {
            let [from, to] = [backup, data].map(|path| format!("{path}/leases.db"));
            cp("-p", from, to);
        });
    });
}

#[test]
fn a_reboot_raises_the_floor_once() {
    on_each(|home| {
        let mut watched = Watched::new(home);
        let mut store = watched.store();
        let lost = watched.grant(&mut store, 2).pop().unwrap();
        forget_note(&watched.site.at(FILE));
        assert!(watched.history_lost());
        let floor = floor_ahead(watched.try_acquire(&mut store));
        assert!(floor > lost.ticks.end);
        let expected = 1_000_000 + HORIZON + FAILOVER + 1;
        assert!((expected..expected + 5).contains(&floor), "{floor}");
        watched.grant(&mut store, 3);
        assert!(!watched.history_lost());
        // And of a namespace that is not on record nothing is known.
        forget_note(&watched.site.at(FILE));
        let init = watched.site.init();
        let error = watched.store().init_if_new(&kit::space("others"), &init);
        assert!(
            matches!(error, Err(StoreError::HistoryUnknown { .. })),
            "{error:?}"
        );
    });
}

/// Removes the note of a file, as a reboot does.
fn forget_note(file: &Path) {
    let text = file.to_str().unwrap();
    let notes = fs::read_dir(SHARED_MEMORY).unwrap();
    let notes = notes.map(|note| note.unwrap().path());
    let is_note = |path: &PathBuf| {
        let said = fs::read_to_string(path).unwrap_or_default();
        said.trim_end().ends_with(&format!(" file {text}"))
    };
    let found: Vec<_> = notes.filter(is_note).collect();
    assert_eq!(found.len(), 1, "{found:?}");
    fs::remove_file(&found[0]).unwrap();
}

#[test]
fn a_snapshot_used_beside_the_original_grants_nothing_twice() {
    let Some(mounted) = Mounted::new("btrfs", &["-q"]) else {
        return;
    };
    let home = mounted.at();
    let subvolume = home.join("volume");
    must_run(
        "btrfs",
        &["subvolume", "create", subvolume.to_str().unwrap()],
    );
    let mut watched = Watched::new(&subvolume);
    let mut original = watched.store();
    watched.grant(&mut original, 2);
    let snapshot = home.join("snapshot");
    let [from, to] = [&subvolume, &snapshot].map(|path| path.to_str().unwrap());
    must_run("btrfs", &["subvolume", "snapshot", from, to]);
    let mut other = Site {
        directory: snapshot.join("data"),
        clock: watched.site.clock.clone(),
    }
    .store(FILE);
    for _ in 0..4 {
        copied(watched.try_acquire(&mut other)).says("subvolume");
        watched.grant(&mut original, 2);
    }
    assert!(!watched.history_lost(), "the original was not disturbed");
}

/// The snapshot has the same inodes and birth times.
#[test]
fn a_volume_put_back_to_a_snapshot_grants_nothing_twice() {
    for (kind, options, mount) in [
        ("ext4", &["-q", "-I", "128"][..], "loop"),
        ("ext4", &["-q", "-I", "256"], "loop"),
        // The former one stays mounted for as long as a descriptor is open.
        ("xfs", &["-q"], "loop,nouuid"),
    ] {
        let Some(mounted) = Mounted::new(kind, options) else {
            continue;
        };
        let [image, snapshot] = ["image", "snapshot"].map(|it| mounted.home.path().join(it));
        let (at, to) = (mounted.at(), mounted.at());
        Watched::new(&at).survives_loss(
            || {
                must_run("sync", &["-f", at.to_str().unwrap()]);
                cp("", &image, &snapshot);
            },
            || {
                assert!(run("umount", |it| it.arg("-l").arg(&to)));
                assert!(run("mount", |it| it
                    .args(["-o", mount])
                    .arg(&snapshot)
                    .arg(&to)));
            },
        );
    }
}

/// A note that can't be written is an error.
#[test]
fn without_room_for_the_note_nothing_is_granted() {
    if let Some(directory) = given_path() {
        let watched = Watched::at(Site::new(&directory));
        unavailable(watched.try_acquire(&mut watched.store()))
            .says(SHARED_MEMORY)
            .says("No space left");
        return;
    }
    if !server::has(
        run("unshare", |it| it.args(["--mount", "true"])),
        "only root can mount",
    ) {
        return;
    }
    let home = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let mut watched = Watched::new(home.path());
    watched.grant(&mut watched.store(), 1);
    for room in [
        "nr_inodes=1 none /dev/shm",
        "size=4k none /dev/shm && head -c 4096 /dev/zero >/dev/shm/full",
    ] {
        in_namespace(
            &watched.site.directory,
            &format!("mount -t tmpfs -o {room}"),
        );
    }
    watched.grant(&mut watched.store(), 1);
}

/// This test again, in a mount namespace of its own, after these commands.
fn in_namespace(directory: &Path, script: &str) {
    let inside = child(directory);
    let mut shell = Command::new("unshare");
    shell.args([
        "--mount",
        "sh",
        "-ec",
        &format!("{script}\nexec \"$0\" \"$@\""),
    ]);
    shell.arg(inside.get_program()).args(inside.get_args());
    let set = inside.get_envs();
    shell.envs(set.filter_map(|(name, value)| Some((name, value?))));
    printed(&mut shell);
}

#[test]
fn a_file_that_is_copied_moved_or_emptied_grants_nothing_twice() {
    on_each(|home| {
        let mut watched = Watched::new(home);
        let mut store = watched.store();
        watched.grant(&mut store, 2);
        // It goes on under another name.
        let renamed = home.join("renamed");
        fs::rename(&watched.site.directory, &renamed).unwrap();
        watched.site.directory = renamed;
        let mut store = watched.store();
        watched.grant(&mut store, 2);
        assert!(!watched.history_lost());

        // A copy does not, nor does a file from another file system.
        let file = watched.site.at(FILE);
        let elsewhere = TempDir::new_in(match home.starts_with(SHARED_MEMORY) {
            true => env!("CARGO_TARGET_TMPDIR"),
            false => SHARED_MEMORY,
        });
        let elsewhere = elsewhere.unwrap();
        for other in [home.join("copy"), elsewhere.path().join("moved")] {
            fs::create_dir(&other).unwrap();
            let site = Site {
                clock: watched.site.clock.clone(),
                directory: other,
            };
            cp("-a", &file, site.at(FILE));
            let granted = site.acquire(&mut site.store(FILE), &watched.space, 50);
            assert!(copied(granted).contains("is a copy"));
        }

        fs::File::create(&file).unwrap();
        let again = watched
            .store()
            .init_if_new(&watched.space, &watched.site.init());
        assert!(
            matches!(again, Err(StoreError::HistoryUnknown { .. })),
            "{again:?}"
        );
    });
}

/// The note is shared by users and by mounts, and not with a container that has a `/dev/shm` of
/// its own.
#[test]
fn one_file_of_several_users_mounts_and_containers_grants_nothing_twice() {
    const NOBODY: u32 = 65_534;
    if let Some(directory) = given_path() {
        let watched = Watched::at(Site::new(&directory));
        assert!(watched.history_lost());
        watched.try_acquire(&mut watched.store()).unwrap_err();
        return;
    }
    let home = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let mut watched = Watched::new(home.path());
    watched.grant(&mut watched.store(), 1);
    forget_note(&watched.site.at(FILE));
    let data = watched.site.directory.clone();
    let Some(mounted) = Mounted::bind(&data) else {
        return;
    };
    let paths = || {
        let files = fs::read_dir(&data).unwrap();
        files.map(|it| it.unwrap().path()).chain([data.clone()])
    };
    for path in paths() {
        std::os::unix::fs::chown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    watched.grant(&mut watched.store(), 1);
    let by_mount = Site {
        directory: mounted.at(),
        clock: watched.site.clock.clone(),
    };
    for _ in 0..2 {
        without_privilege(|| watched.grant(&mut watched.store(), 1));
        watched.grant(&mut by_mount.store(FILE), 1);
        assert!(!watched.history_lost(), "it began no new life");
    }

    for path in paths() {
        allow(&path, if path.is_dir() { 0o770 } else { 0o660 });
    }
    forget_note(&by_mount.at(FILE));
    for user in [1001, 1002, 1001] {
        as_member(user, NOBODY, || watched.grant(&mut watched.store(), 1));
        assert!(!watched.history_lost(), "they share one note");
    }

    in_namespace(&data, "mount -t tmpfs none /dev/shm");
    assert!(watched.history_lost(), "the container wrote");
    watched.grant(&mut watched.store(), 2);
}

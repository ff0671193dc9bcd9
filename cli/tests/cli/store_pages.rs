//! The guide's pages about servers, followed to the letter: their commands are run on a real
//! server, by the users that they make.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use ringflake_kit::server::{Etcd, MariaDb, PASSWORD, Postgres, Redis, TestServer as _, find, has};
use ringflake_kit::tls::allow;
use ringflake_kit::{assert_says, words};
use serde_json::Value;

use crate::home::{Home, fail, spawn, stdout, succeed};

struct Page {
    text: &'static str,
    home: Home,
    /// Of the user `USER`.
    url: String,
    port: u16,
}

impl Page {
    fn new(text: &'static str, port: u16, place: &str) -> Self {
        let (scheme, database) = place.split_once("/").unwrap();
        let page = Self {
            text,
            home: Home::new(),
            url: format!("{scheme}//USER@127.0.0.1:{port}/{database}"),
            port,
        };
        for (user, password) in [("owner", "owner-secret"), ("orders", "app-secret")] {
            let file = format!("{user}.password");
            page.home.write_secret(&file, format!("{password}\n"));
        }
        let keygen = "keygen --out /etc/orders/ringflake.key";
        assert_says(text, &[&format!("`ringflake {keygen}`")]);
        succeed(page.run("USER", &page.here(keygen)));
        page
    }

    fn key(&self) -> String {
        self.home.path("ringflake.key")
    }

    /// The block of code that has this part.
    fn block(&self, language: &str, part: &str) -> &'static str {
        let start = format!("```{language}\n");
        let blocks = self.text.split(&start).skip(1);
        let mut blocks = blocks.map(|block| block.split_once("\n```").unwrap().0);
        let found = blocks.find(|block| block.contains(part));
        found.unwrap_or_else(|| panic!("no {language} with {part}"))
    }

    fn set_up(&self, command: &mut Command) {
        for variable in ["RINGFLAKE_BACKEND", "RINGFLAKE_BEST_EFFORT"] {
            command.env_remove(variable);
        }
        command
            .env("RINGFLAKE_DATA_DIR", self.home.data_dir())
            .env("RINGFLAKE_SECRET_FILE", self.key());
    }

    /// A command for this server and this key file.
    fn here(&self, command: &str) -> String {
        let here = format!("127.0.0.1:{}", self.port);
        command
            .replace("rediss://", "redis://")
            .replace("etcds://", "etcd://")
            .replace("etcd1.example,etcd2.example,etcd3.example", &here)
            .replace("etcd1.example:2379", &here)
            .replace("redis.example", &here)
            .replace("db.example", &here)
            .replace("redis-cli", &format!("redis-cli -p {}", self.port))
            .replace("/etc/orders/ringflake.key", &self.key())
    }

    /// Runs the commands of a block, and returns what they print.
    #[track_caller]
    fn follow(&self, part: &str) -> String {
        let mut shell = shell(&self.home, &self.here(self.block("sh", part)));
        self.set_up(&mut shell);
        shell.envs(self.etcdctl());
        stdout(&succeed(shell.output().unwrap()))
    }

    fn etcdctl(&self) -> [(&'static str, String); 4] {
        [
            ("ETCDCTL_API", "3".to_owned()),
            (
                "ETCDCTL_ENDPOINTS",
                format!("http://127.0.0.1:{}", self.port),
            ),
            // Only turn a hang into a failure.
            ("ETCDCTL_COMMAND_TIMEOUT", "60s".to_owned()),
            ("ETCDCTL_DIAL_TIMEOUT", "60s".to_owned()),
        ]
    }

    /// Runs the program as a user of the store.
    fn run(&self, user: &str, line: &str) -> Output {
        let mut command = self.home.command(line);
        self.set_up(&mut command);
        let url = self.url.replace("USER", user);
        let command = command.env("RINGFLAKE_STORE", url);
        command.output().unwrap()
    }

    /// What a service and its operator do.
    fn serve(&self) {
        let user = "orders:app-secret";
        let ids = succeed(self.run(user, "generate --namespace orders --wait 60s"));
        assert_eq!(stdout(&ids).lines().count(), 10);
        let blocks = succeed(self.run(user, "store ls --all --namespace orders"));
        assert_says(&stdout(&blocks), &["released"]);
    }

    /// The service's check. A busy machine may take longer than the five seconds of an operation.
    fn check(&self) -> Output {
        let once = || self.run("orders:app-secret", "store check --namespace orders");
        let is_late = |it: &Output| {
            let said = [&*it.stdout, &*it.stderr].concat();
            String::from_utf8_lossy(&said).contains("did not end within")
        };
        (0..10).map(|_| once()).find(|it| !is_late(it)).unwrap()
    }

    /// A check finds out when the service lacks one of these rights, which `take` takes away and
    /// `give` gives back.
    fn needs(&self, rights: &[&str], take: impl Fn(&str), give: impl Fn(&str)) {
        for right in rights {
            take(right);
            eprintln!("without {right}:");
            let said = fail(self.check());
            assert_says(&said, &["a test write failed"]);
            assert!(!said.contains("the outcome is unknown"), "{right}: {said}");
            give(right);
            succeed(self.check());
        }
    }

    /// The steps around a restore: the store is closed to the service, the owner raises the
    /// floor, and the store is opened.
    #[track_caller]
    fn restore(&self, close: impl FnOnce(), open: impl FnOnce()) {
        const RAISED: &str = "ahead of the store's time";
        let is_raised = || {
            let check = self.check();
            let said = [check.stdout, check.stderr].concat();
            String::from_utf8_lossy(&said).contains(RAISED)
        };
        assert!(!is_raised());
        close();
        assert!(!fail(self.check()).contains(RAISED));
        self.follow("store raise-floor");
        open();
        assert!(is_raised());
    }

    /// When the table is lost, a check gives a command that its owner can run.
    #[track_caller]
    fn begins_anew(&self, owner: &str) {
        let check = "store check --namespace orders";
        let advice = fail(self.run(owner, check));
        let lines = [
            "has no namespace",
            "else, once the clock is right, run the same with '--history unknown'",
        ];
        assert_says(&advice, &lines);
        let (_, line) = advice.split_once("run 'ringflake ").unwrap();
        let (init, _) = line.split_once('\'').unwrap();
        succeed(self.run(owner, &init.replace("--history new", "--history unknown")));
        let wait = fail(self.run(owner, check));
        assert_says(&wait, &["the floor was raised", "grants start in"]);
    }
}

/// A shell that runs this, and finds the program.
fn shell(home: &Home, script: &str) -> Command {
    let program = Path::new(env!("CARGO_BIN_EXE_ringflake"));
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", program.parent().unwrap().display());
    let mut shell = Command::new("sh");
    shell.args(["-euc", script]).env("PATH", path);
    shell.current_dir(home.file(""));
    shell
}

/// Feeds `command`, and returns what it prints.
#[track_caller]
fn feed(command: &mut Command, input: &str) -> String {
    let mut child = spawn(command.stdin(Stdio::piped()));
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    drop(stdin);
    stdout(&succeed(child.wait_with_output().unwrap()))
}

/// Asserts that the output contains the record as JSON.
#[track_caller]
fn assert_shows_record(shown: &str) {
    let record = shown
        .lines()
        .find_map(|line| line.find("{\"format\"").map(|at| &line[at..]));
    serde_json::from_str::<Value>(record.expect(shown)).unwrap();
}

#[test]
fn the_page_on_postgresql_can_be_followed() {
    let server = started!(Postgres::start());
    let psql = started!(find("psql", "postgresql-client"));
    let text = include_str!("../../../src/lease/guide/runbook_postgres.md");
    let page = Page::new(text, server.port(), "postgres:/ids");
    let run = |user: &str, database: &str, sql: &str| {
        let url = format!("postgres://{user}@127.0.0.1:{}/{database}", page.port);
        let mut psql = Command::new(&psql);
        psql.args(["-qAt", "--set=ON_ERROR_STOP=1", &url]);
        feed(&mut psql, sql)
    };
    let administrator = format!("postgres:{PASSWORD}");
    let owner = "ringflake:owner-secret";
    run(
        &administrator,
        "postgres",
        page.block("sql", "CREATE ROLE orders"),
    );
    page.follow("store init");
    run(owner, "ids", page.block("sql", "GRANT SELECT"));
    page.follow("store check");
    page.serve();
    let shown = run(owner, "ids", page.block("sql", "FROM ringflake_block"));
    assert_eq!(shown.lines().count(), 2, "{shown}");
    assert_shows_record(&shown);

    let rights = [
        "INSERT ON ringflake",
        "UPDATE (value, rank) ON ringflake",
        "SELECT ON ringflake_ledger",
        "INSERT ON ringflake_ledger",
        "UPDATE ON ringflake_ledger",
        "DELETE ON ringflake_ledger",
    ];
    let take = |right: &str| drop(run(owner, "ids", &format!("REVOKE {right} FROM orders")));
    let give = |right: &str| drop(run(owner, "ids", &format!("GRANT {right} TO orders")));
    page.needs(&rights, take, give);
    let by_administrator = |sql: &str| drop(run(&administrator, "ids", sql));
    let open = "GRANT CONNECT ON DATABASE ids TO orders;";
    assert_says(text, &[&format!("\n```sql\n{open}\n```\n")]);
    page.restore(
        || by_administrator(page.block("sql", "REVOKE CONNECT")),
        || by_administrator(open),
    );
    run(owner, "ids", "DROP TABLE ringflake CASCADE");
    page.begins_anew(owner);
}

#[test]
fn the_page_on_mysql_can_be_followed() {
    let server = started!(MariaDb::start());
    let client = started!(find("mariadb", "mariadb-client"));
    let text = include_str!("../../../src/lease/guide/runbook_mysql.md");
    let page = Page::new(text, server.port(), "mysql:/ids");
    let port = format!("--port={}", page.port);
    let run = |arguments: &[&str], sql: &str| {
        let mut client = Command::new(&client);
        client.args(["--no-defaults", "--host=127.0.0.1", &port]);
        feed(client.args(arguments), sql)
    };
    let administrator = ["--user=root"];
    let owner = ["--user=ringflake", "--password=owner-secret", "ids"];
    run(&administrator, page.block("sql", "CREATE USER 'orders'"));
    page.follow("store init");
    run(
        &administrator,
        page.block("sql", "ids.ringflake TO 'orders'"),
    );
    page.follow("store check");
    page.serve();
    let shown = run(&owner, page.block("sql", "FROM ringflake_block"));
    // Each result has a line of titles.
    assert_eq!(shown.lines().count(), 4, "{shown}");
    assert_shows_record(&shown);

    let change = |verb: &str, right: &str, word: &str| {
        let sql = format!("{verb} {right} ON ids.ringflake {word} 'orders'@'%'");
        run(&administrator, &sql);
    };
    let take = |right: &str| change("REVOKE", right, "FROM");
    let give = |right: &str| change("GRANT", right, "TO");
    page.needs(&["INSERT", "UPDATE"], take, give);
    let close = page.block("sql", "ACCOUNT LOCK");
    page.restore(
        || drop(run(&administrator, &close.replace("KILL 4711", "DO 0"))),
        || drop(run(&administrator, page.block("sql", "ACCOUNT UNLOCK"))),
    );
    run(&administrator, "DROP TABLE ids.ringflake");
    page.begins_anew("ringflake:owner-secret");
}

#[test]
fn the_page_on_redis_can_be_followed() {
    let server = started!(Redis::start());
    started!(find("redis-cli", "redis-tools"));
    let text = include_str!("../../../src/lease/guide/runbook_redis.md");
    let page = Page::new(text, server.port(), "redis:/0");
    let set_user = |line: &str| {
        let mut words = words(line);
        words.splice(..1, ["ACL", "SETUSER"]);
        server.command(&words);
    };
    let users = page.block("text", "user orders").lines();
    // The test itself goes on as the default user.
    let users = users.filter(|line| !line.starts_with("user default"));
    users.for_each(set_user);
    page.follow("store init");
    page.serve();
    let shown = page.follow("redis-cli");
    assert_says(&shown, &["block/0000000000", "orders"]);
    assert_shows_record(&shown);

    let take = |right: &str| set_user(&format!("user orders -{right}"));
    let give = |right: &str| set_user(&format!("user orders +{right}"));
    page.needs(&["hset", "zadd", "zrange"], take, give);
    page.restore(
        || set_user("user orders off"),
        || set_user("user orders on"),
    );
    server.command(&["DEL", "ringflake:{orders}"]);
    page.begins_anew("owner:owner-secret");
}

#[test]
fn the_page_on_etcd_can_be_followed() {
    let server = started!(Etcd::start_with(1, &["--bcrypt-cost", "4"]));
    let text = include_str!("../../../src/lease/guide/runbook_etcd.md");
    let page = Page::new(text, server.port(), "etcd:/");
    page.home.write_secret("root.password", "root-secret\n");
    page.follow("etcdctl auth enable");
    page.follow("ringflake store init");
    page.serve();
    assert_shows_record(&page.follow("get --prefix ringflake/orders/"));

    let as_root = |line: &str| {
        let line = format!("--user=root:root-secret {line}");
        server.ctl(0, &words(&line));
    };
    // In place of the right before.
    let grant = |right: &str, key: &str| {
        as_root(&format!(
            "role grant-permission orders-leases {right} {key}"
        ));
    };
    let take = |key: &str| grant("read", key);
    let give = |key: &str| grant("readwrite", key);
    page.needs(&["ringflake/.history"], take, give);
    page.restore(
        || as_root("user revoke-role orders orders-leases"),
        || as_root("user grant-role orders orders-leases"),
    );
    as_root("del --prefix ringflake/orders/");
    page.begins_anew("owner:owner-secret");
}

/// Runs as root; `nobody` stands in for the service's user.
#[test]
fn the_page_on_sqlite_can_be_followed() {
    // SAFETY: no arguments, no failure.
    let is_root = unsafe { libc::geteuid() } == 0;
    if !has(is_root, "only root can act as another user") {
        return;
    }
    started!(find("sqlite3", "sqlite3"));
    let text = include_str!("../../../src/lease/guide/runbook_sqlite.md");
    const USER: &str = "setpriv --reuid=nobody --regid=nogroup --clear-groups";
    let home = Home::on_disk();
    allow(&home.file("."), 0o755);
    let text = text
        .replace("/var/lib/orders", &home.path("lib"))
        .replace("/etc/orders", &home.path("etc"))
        .replace("-o orders -g orders", "-o nobody -g nogroup")
        .replace("sudo -E -H -u orders", USER)
        .replace("sudo -u orders", USER);
    let blocks: Vec<_> = text.split("```sh\n").skip(1).collect();
    let block = |part: &str| {
        let found = blocks.iter().find(|block| block.contains(part));
        found.expect(part).split_once("\n```").unwrap().0
    };
    let [set_up, people, raise_floor] = ["store init", "sqlite3", "raise-floor"].map(block);
    let generate = format!("{USER} ringflake generate --namespace orders");
    // All of it is done in one shell.
    let script = [set_up, &generate, people, raise_floor].join("\n");
    let mut shell = shell(&home, &script);
    shell.env("RINGFLAKE_DATA_DIR", home.data_dir());
    assert_says(&stdout(&succeed(shell.output().unwrap())), &["0|1|"]);
}

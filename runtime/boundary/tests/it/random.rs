//! Random worlds and sentences, the same for the same seed. Small alphabets, so
//! that what is asked for and what is granted often meet.

use synapse_abi::registry::{Argument, Kind, Primitive, REGISTRY, Rights, Role, Row, Type};
use synapse_boundary::capability::End;
use synapse_boundary::scope::{Effect, Method};
use synapse_boundary::{Integrity, Secrecy, Warrants};
use synapse_reply::Fault;

use crate::names::{self, BAD, HOSTS, NAMES, NETS, STEPS, URLS, WRONG_HOSTS, WRONG_URLS};
use crate::sentences::Random;
use crate::world::{
    Flaw, Form, Handle, Json, Limit, NetEntry, Sentence, Stamp, ToolEntry, Value, World,
};

/// Names of headers that a request may carry, each once.
const HEADERS: &[&str] =
    &["accept", "Accept", "range", "x-a", "$x", "authorization", "cookie", "tea", "x-hosts"];

/// Values that ask for a secret, or for a part of one.
const BLANKS: &[&str] = &[
    "{secret:a}", "{secret:a}", "{secret:b_9}", "Bearer {secret:a}", "Bearer {secret:a}",
    "x{secret:a}", "{secret:a}{secret:b_9}", "{secret:}", "a=b {secret:a}",
];
/// Names of headers that it may not carry.
const WRONG_HEADERS: &[&str] = &[
    "Host", "te", "Content_Length", "x-forwarded-for", "X-HTTP-Method-Override", "_method",
    "proxy-authorization", "a b", "a:", "", "a\u{e9}",
];

/// Texts that are no value of a header.
const WRONG_LINES: &[&str] = &[" x", "x\r\nhost: a", "a\u{e9}", "\0", "x\t"];

/// Paths that are normal, sound and often granted.
const PATHS: &[&str] =
    &["/data/x", "/data/a/x", "/data/out/y.md", "/data/SOUL.md", "/data/.GIT/x", "/home/x"];
const ROOTS: &[&str] = &["/", "/data", "/data/a", "/data/out", "/home", ""];
const ALLOW: &[&str] =
    &["/data/**", "/data/**", "/**", "/data/*", "/data/a/x", "/data/out/*", "/home/**", "/*"];
const DENY: &[&str] = &[
    "/data/private/**", "/data/Out", "/data/out/*", "**/.env", "**/\u{e9}", "/data/A/**",
    "/home/e\u{301}/**", "**/.git",
];
const ROLES: &[&[(&str, &str)]] =
    &[&[], &[("to", "person")], &[("to", "person"), ("amount", "")], &[("amount", ""), ("to", "")]];
const TOOLS: &[&str] = &["mail/send", "mail/read", "notes/add", "pay/out"];
const ADDRESSES: &[&str] = &[
    "x@a.example", "b@b.example", "x@c", "x@c,y@a.example", "x@c\ny@a.example", "@a.example",
    "x@a.example.evil", "",
];
const LINES: &[&str] = &[
    "delete /data/x and /data/a/x",
    "remove all in out",
    "move /data/x to /data/a/x",
    "save x as /data/out/y.md",
    "post x@a.example to https://a.example/ and a.example/v1",
    "fetch a.example/v1 now",
    "listen on 127.0.0.1 port 443",
    "serve at a.example on 8080",
    "pay amount 50 to b@b.example and x@a.example",
    "update a/x",
    "delete what is in /data/a",
    "tidy /data/.GIT and write /home/x",
    "delete all of /data",
];
/// Content that leads somewhere: where a line may send it too, or nowhere else.
const LINKS: &[&str] = &[
    "see https://a.example/", "a.example/v1", "(www.b.example)", "x//c.example/?q", "b.example:80",
];
const DATES: &[&str] = &[
    "2024-02-27", "2024-02-28", "2024-02-29", "2024-03-01", "2024-02-26", "2024-03-02",
    "2024-02-30", "2024-02-9", "2024-02-29T10:00", "1969-12-31",
];
const LIKE: &[&str] = &["*@a.example", "b@b.example"];
const NUMBERS: &[&str] = &["0", "50", "49.99", "50.01", "-1", "-0.5", "true", "null"];
const SECRETS: &[u64] = &[0, 0, 0, 1, 2, 3, 256, 257, 1 << 63];
const CLEARED: &[u64] = &[0, 1, 1, 3, 257, u64::MAX];
const NO_NAME: &[&str] = &["fs_reads", "f", "tool", "shell", "fs_delete2", "net_http_put"];

impl Random {
    fn one_in(&mut self, bound: usize) -> bool {
        self.below(bound) == 0
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    fn some<T: Copy>(&mut self, from: &[T], most: usize) -> Vec<T> {
        (0..self.below(most + 1)).map(|_| self.pick(from)).collect()
    }

    pub(crate) fn world(&mut self) -> World {
        let all = REGISTRY.iter().map(|row| row.primitive);
        let granted: Vec<Primitive> = all.filter(|_| !self.one_in(16)).collect();
        let mut table = World::table(&granted);
        let mut handles = Vec::new();
        for _ in 0..self.below(5) {
            let kind = self.pick(&[Kind::Agent, Kind::Channel, Kind::Channel, Kind::Listener]);
            let peer = self.one_in(2).then(|| self.pick(CLEARED));
            let number = table.open(End { kind, peer: peer.map(Secrecy::from_bits) }).unwrap();
            if self.one_in(4) {
                assert!(table.close(number).is_some());
            } else {
                handles.push(Handle { number, kind, peer });
            }
        }
        let mut world = World {
            granted,
            calls_left: self.pick(&[0, 1, 1, 5, 9, 9, 9, 9, 9, 9, 9, 9, 9, u64::MAX]),
            mark: self.stamp(),
            allow: (0..self.below(4)).map(|_| (self.pick(ALLOW), self.rights())).collect(),
            deny: if self.one_in(2) { self.some(DENY, 3) } else { Vec::new() },
            nets: (0..self.below(8)).map(|_| self.net()).collect(),
            served: (0..self.below(6))
                .map(|_| (self.pick(names::SECRETS), self.pick(&["a.example", "10.1.2.3"])))
                .collect(),
            deny_hosts: if self.one_in(3) { self.some(NETS, 2) } else { Vec::new() },
            tools: TOOLS.iter().filter_map(|name| self.tool(name)).collect(),
            held: (1..=self.below(6)).filter_map(|number| self.value(number)).collect(),
            handles,
            journal_room: self.pick(&[0, 0, 1, 1 << 20]),
            own: if self.one_in(2) { self.some(PATHS, 3) } else { Vec::new() },
            table,
            lines: self.some(LINES, 3).into_iter().map(String::from).collect(),
            warrants: Warrants::default(),
            leave: Vec::new(),
            funded: Vec::new(),
            mounts: vec![("/data".into(), String::new())],
        };
        // A place that is typed and granted, so that a link is what stops a call.
        if self.one_in(4) {
            world.lines.push(LINES[4].into());
            let methods = vec![Method::Get, Method::Post];
            let (ports, paths, clear) = ((1, 65_535), vec!["/"], self.pick(CLEARED));
            let (secrets, reads) = (self.some(names::SECRETS, 2), self.one_in(2));
            world.nets.push(NetEntry {
                host: "a.example",
                methods,
                ports,
                paths,
                clear,
                secrets,
                reads,
            });
        }
        world
    }

    fn stamp(&mut self) -> Stamp {
        let levels = [Integrity::System, Integrity::User, Integrity::User, Integrity::Ingested];
        Stamp { integrity: self.pick(&levels), secrecy: self.pick(SECRETS) }
    }

    fn rights(&mut self) -> Rights {
        let each = [Rights::LIST, Rights::READ, Rights::WRITE, Rights::DELETE];
        let all = each.into_iter().fold(Rights::NONE, Rights::and);
        if self.one_in(2) { all } else { self.pick(&each).and(self.pick(&each)) }
    }

    fn net(&mut self) -> NetEntry {
        let methods = [Method::Get, Method::Post, Method::Listen];
        NetEntry {
            host: self.pick(NETS),
            methods: if self.one_in(3) { self.some(&methods, 2) } else { methods.into() },
            ports: self.pick(&[(1, 65_535), (1, 65_535), (443, 443), (80, 8080)]),
            paths: self.pick(&[&["/"][..], &["/"], &["/v1"], &["/v1/", "/latest"], &[]]).into(),
            clear: self.pick(CLEARED),
            secrets: self.some(names::SECRETS, 2),
            reads: self.one_in(2),
        }
    }

    fn tool(&mut self, name: &'static str) -> Option<ToolEntry> {
        let effects = [Effect::Read, Effect::Store, Effect::Free, Effect::Commit, Effect::Commit];
        let mut limits = Vec::new();
        if self.one_in(3) {
            limits.push(("to", Limit::Like(LIKE)));
        }
        if self.one_in(3) {
            limits.push((self.pick(&["amount", "$amount"]), Limit::Within("0", "50")));
        }
        if self.one_in(4) {
            limits.push(("due", Limit::Dated(1, 2)));
        }
        let (effect, clear) = (self.pick(&effects), self.pick(CLEARED));
        let roles = self.pick(ROLES);
        let says = self.pick(&[&[][..], &["delete", "post"], &["pay", "fetch"]]);
        (!self.one_in(4)).then_some(ToolEntry { name, effect, limits, clear, roles, says })
    }

    fn value(&mut self, number: usize) -> Option<Value> {
        let (bytes, fault) = match self.below(8) {
            0 => (Vec::new(), Some(Fault::NotFound)),
            1 => (b"/data/\xff".to_vec(), None),
            2 => (self.pick(URLS).0.into(), None),
            3 => (self.pick(HOSTS).into(), None),
            4 => (self.pick(ADDRESSES).into(), None),
            _ if self.one_in(64) => ("/m/..".repeat(900).into_bytes(), None),
            _ => (self.path().into_bytes(), None),
        };
        let number = u64::try_from(number).unwrap();
        let value = Value { number, stamp: self.stamp(), bytes, fault };
        (!self.one_in(8)).then_some(value)
    }

    fn path(&mut self) -> String {
        if self.one_in(2) {
            return self.pick(PATHS).into();
        }
        let mut path = String::from(self.pick(ROOTS));
        for _ in 0..self.below(4) {
            path.push('/');
            match self.below(16) {
                0 => path.push_str(self.pick(BAD)),
                1..4 => path.push_str(self.pick(STEPS)),
                _ => path.push_str(self.pick(NAMES)),
            }
        }
        match self.below(128) {
            0 => path.push_str(&"/l".repeat(self.pick(&[60, 63, 64, 65]))),
            1 => path.push_str(&format!("/{}", "l".repeat(self.pick(&[255, 256])))),
            2 => path = path.trim_start_matches('/').into(),
            _ => {}
        }
        path
    }

    /// A call of what a warrant of this world covers, but for its contents.
    pub(crate) fn covered(&mut self, world: &World) -> Option<Sentence> {
        let leave = world.leave.get(self.below(world.leave.len().max(1)))?;
        let row = REGISTRY.iter().find(|row| row.name == leave.sentence.name)?;
        let mut sentence = Sentence { form: Form::Call { hold: false }, ..leave.sentence.clone() };
        sentence.arguments.clear();
        for argument in row.arguments {
            let fixed = leave.sentence.arguments.iter().find(|(name, _)| *name == argument.name);
            let value = match fixed {
                Some((_, Json::Text(path))) if argument.ty == Type::Path => {
                    Json::Text(path.replace("**", "*").replace('*', self.pick(NAMES)))
                }
                Some((_, fixed)) => fixed.clone(),
                None => self.argument(world, argument, false),
            };
            sentence.arguments.push((argument.name, value));
        }
        Some(sentence)
    }

    /// A warrant that may be minted in this world.
    pub(crate) fn warrant(&mut self, world: &World) -> Sentence {
        let taking: Vec<_> = REGISTRY.iter().filter(|row| row.primitive.takes_warrant()).collect();
        let post = Primitive::NetHttpPost.row();
        let row = if self.one_in(8) { post } else { self.pick(&taking) };
        let form = Form::Warrant { uses: self.pick(&[1, 1, 2]) };
        let mut sentence =
            Sentence { form, name: row.name, arguments: Vec::new(), flaw: None, wrong: Vec::new() };
        self.arguments(world, row, &mut sentence);
        for (_, value) in &mut sentence.arguments {
            if let Json::Text(path) = value
                && path.starts_with("/data/")
                && self.one_in(4)
            {
                *path =
                    self.pick(&["/data/a/*", "/data/out/**", "/data/**", "/data/.GIT/*"]).into();
            } else if let Json::Text(url) = value
                && url.starts_with("https://")
                && sentence.wrong.is_empty()
                && !self.one_in(4)
            {
                *url = self.pick(&["https://a.example/", "https://a.example/v1"]).into();
            }
        }
        sentence
    }

    /// A sentence that may mean something in this world.
    pub(crate) fn sentence(&mut self, world: &World) -> Sentence {
        let row = &REGISTRY[self.below(REGISTRY.len())];
        let form = match self.below(8) {
            0 => Form::Warrant { uses: self.pick(&[1, 1, 2, 9, 64, 64, 0, 65]) },
            hold => Form::Call { hold: hold == 1 },
        };
        let name = if self.one_in(128) { self.pick(NO_NAME) } else { row.name };
        let flaws = [
            Flaw::Empty,
            Flaw::BeforeName,
            Flaw::NotUtf8,
            Flaw::CutOff,
            Flaw::Trailing,
            Flaw::AfterName,
        ];
        let flaw = self.one_in(64).then(|| self.pick(&flaws));
        let mut sentence = Sentence { form, name, arguments: Vec::new(), flaw, wrong: Vec::new() };
        self.arguments(world, row, &mut sentence);
        if self.one_in(128) {
            self.spoil(&mut sentence);
        }
        sentence
    }

    /// Gives a sentence the arguments of a row.
    fn arguments(&mut self, world: &World, row: &'static Row, sentence: &mut Sentence) {
        let warrant = matches!(sentence.form, Form::Warrant { .. });
        let verb = matches!(row.primitive, Primitive::ToolUse | Primitive::ToolCommit);
        for argument in row.arguments {
            if warrant && !verb && argument.role != Role::Target {
                continue;
            }
            let (value, wrong) = match self.below(96) {
                0 => (self.misplaced(argument.ty, warrant), Some(101)),
                1 | 2 => self.wrong(argument).map_or_else(
                    || (self.argument(world, argument, warrant), None),
                    |(value, code)| (value, Some(code)),
                ),
                _ => (self.argument(world, argument, warrant), None),
            };
            sentence.arguments.push((argument.name, value));
            sentence.wrong.extend(wrong);
        }
    }

    /// Takes an argument away, adds one, or changes the order or a name.
    fn spoil(&mut self, sentence: &mut Sentence) {
        let arguments = &mut sentence.arguments;
        let before: Vec<_> = arguments.iter().map(|(name, _)| *name).collect();
        match self.below(4) {
            0 => drop(arguments.pop()),
            1 => arguments.push(("extra", Json::Uint(1))),
            2 => arguments.reverse(),
            _ => arguments.iter_mut().take(1).for_each(|(name, _)| *name = "Path"),
        }
        if !arguments.iter().map(|(name, _)| *name).eq(before) {
            sentence.wrong.push(101);
        }
    }

    /// A value that the argument's type allows.
    fn argument(&mut self, world: &World, argument: &Argument, warrant: bool) -> Json {
        match argument.ty {
            Type::Path | Type::Url | Type::Host | Type::Text if self.one_in(4) => {
                if warrant {
                    Json::Select(self.number())
                } else {
                    Json::Held(self.number())
                }
            }
            Type::Path => Json::Text(self.path()),
            Type::Url => Json::Text(self.pick(URLS).0.into()),
            Type::Host => Json::Text(self.pick(HOSTS).into()),
            Type::Text => Json::Text(self.pick(NAMES).into()),
            Type::Port => Json::Uint(self.pick(&[0, 443, 80, 8080, 65_535])),
            Type::Uint => Json::Uint(self.pick(&[0, 1, 65_536, 999_999_999_999_999])),
            Type::Choice(words) => Json::Text(self.pick(words).into()),
            Type::Handle(Kind::Value) => Json::Held(self.number()),
            Type::Handle(_) => Json::Uint(self.handle(world)),
            Type::Name if argument.name == "tool" && self.one_in(12) => {
                Json::Text("other/x".into())
            }
            Type::Name if argument.name == "tool" => Json::Text(self.pick(TOOLS).into()),
            Type::Name => Json::Text(self.pick(&["librarian", "a-b_9"]).into()),
            Type::Json if argument.name == "headers" && !self.one_in(8) => self.headers(),
            Type::Json => self.object(if warrant { Json::Select } else { Json::Held }),
            Type::Literal => self.object(|_| Json::Bare("null")),
            Type::Selector => Json::Select(self.number()),
            Type::Content => self.content(),
            Type::Prompt => Json::List(vec![self.message()]),
        }
    }

    /// The number of a held value, which may not exist.
    fn number(&mut self) -> u64 {
        self.pick(&[1, 1, 1, 2, 2, 3, 4, 5, 999])
    }

    fn handle(&mut self, world: &World) -> u64 {
        match world.handles.len() {
            open if open > 0 && !self.one_in(6) => world.handles[self.below(open)].number,
            _ => self.pick(&[0, 1, 2, 3, 4, 5, 1 << 20, 999_999_999_999_999]),
        }
    }

    fn object(&mut self, reference: fn(u64) -> Json) -> Json {
        let mut members = Vec::new();
        for _ in 0..self.below(4) {
            let key = self.pick(&[
                "to", "to", "amount", "amount", "due", "due", "$amount", "text", "", "a\u{e9}",
            ]);
            let mut value = match (key, self.below(6)) {
                (_, 0) => reference(self.number()),
                ("to", 1..) => Json::Text(self.pick(ADDRESSES).into()),
                ("amount" | "$amount", 1..) => Json::Bare(self.pick(NUMBERS)),
                ("due", 1..) => Json::Text(self.pick(DATES).into()),
                (_, 1) => Json::Object(vec![("$held", Json::Uint(1))]),
                _ => Json::Uint(7),
            };
            match self.below(24) {
                0..4 => value = Json::List(vec![value, Json::Text(self.pick(ADDRESSES).into())]),
                4 => value = nested(3, Json::Uint(1)),
                _ => {}
            }
            members.push((key, value));
        }
        Json::Object(members)
    }

    fn headers(&mut self) -> Json {
        let mut members = Vec::new();
        for _ in 0..self.below(3) {
            let value = match self.below(16) {
                0 => Json::Held(self.number()),
                1 => Json::Text(self.pick(WRONG_LINES).into()),
                2..4 => Json::Text(self.pick(BLANKS).into()),
                _ => Json::Text(self.pick(&["text/html, */*", "", "x\"y"]).into()),
            };
            let names = if self.one_in(8) { WRONG_HEADERS } else { HEADERS };
            members.push((self.pick(names), value));
        }
        Json::Object(members)
    }

    fn piece(&mut self) -> Json {
        match self.below(6) {
            0 | 1 => Json::Held(self.number()),
            2 => Json::Text(self.pick(LINKS).into()),
            3 => Json::Text("{\"$held\":1}\\\u{1b}\n".into()),
            _ => Json::Text(self.pick(NAMES).repeat(9)),
        }
    }

    fn content(&mut self) -> Json {
        if self.one_in(20_000) {
            return Json::Text("l".repeat(1 << 20));
        }
        if self.one_in(3) {
            let parts = (0..=self.below(3)).map(|_| self.piece()).collect();
            return Json::Object(vec![("parts", Json::List(parts))]);
        }
        self.piece()
    }

    fn message(&mut self) -> Json {
        let role = self.pick(&["system", "user", "assistant"]);
        Json::Object(vec![("role", Json::Text(role.into())), ("text", self.content())])
    }

    /// A value of the grammar that is over a limit or not canonical, with its
    /// code, where the type has one.
    fn wrong(&mut self, argument: &Argument) -> Option<(Json, u16)> {
        let long = |length: usize| Some((Json::Text("l".repeat(length)), 102));
        match argument.ty {
            Type::Url if self.one_in(4) => long(2049),
            Type::Url => Some((Json::Text(self.pick(WRONG_URLS).into()), 104)),
            Type::Host if self.one_in(4) => long(256),
            Type::Host => Some((Json::Text(self.pick(WRONG_HOSTS).into()), 104)),
            Type::Name if argument.name == "tool" => {
                Some((Json::Text(format!("s/{}", "l".repeat(4095))), 102))
            }
            Type::Path | Type::Text | Type::Name => long(4097),
            Type::Json | Type::Literal => {
                Some((Json::Object(vec![("k", Json::Text("l".repeat(32_768)))]), 102))
            }
            Type::Content => {
                let parts = vec![self.piece(); 65];
                Some((Json::Object(vec![("parts", Json::List(parts))]), 102))
            }
            Type::Prompt => Some((Json::List(vec![self.message(); 65]), 102)),
            Type::Port | Type::Uint | Type::Choice(_) | Type::Handle(_) | Type::Selector => None,
        }
    }

    /// A value that the grammar has elsewhere, or nowhere.
    fn misplaced(&mut self, ty: Type, warrant: bool) -> Json {
        let reference = if warrant { Json::Held(1) } else { Json::Select(1) };
        let options = match ty {
            Type::Path | Type::Url | Type::Host | Type::Text => {
                [Json::Uint(1), Json::Bare("null"), reference]
            }
            Type::Port => [Json::Uint(65_536), Json::Bare("080"), Json::Held(1)],
            Type::Uint => [Json::Uint(1_000_000_000_000_000), Json::Bare("1.5"), Json::Held(1)],
            Type::Choice(_) => [Json::Text("Append".into()), Json::Held(1), Json::Uint(0)],
            Type::Handle(Kind::Value) => [Json::Uint(1), Json::Text("1".into()), Json::Select(1)],
            Type::Handle(_) => [Json::Held(1), Json::Text("1".into()), Json::Bare("-1")],
            Type::Name => [Json::Held(1), Json::Text("A/b".into()), Json::Text("a/b/c".into())],
            Type::Json | Type::Literal => [
                Json::Held(1),
                nested(5, Json::Uint(1)),
                Json::Object(vec![("a", if ty == Type::Json { reference } else { Json::Held(1) })]),
            ],
            Type::Selector => [Json::Held(1), Json::Text("a".into()), Json::Object(Vec::new())],
            Type::Content => {
                [Json::Uint(1), Json::Object(Vec::new()), Json::List(vec![Json::Held(1)])]
            }
            Type::Prompt => [Json::List(Vec::new()), Json::Text("a".into()), Json::Held(1)],
        };
        let [a, b, c] = options;
        [a, b, c].into_iter().nth(self.below(3)).unwrap()
    }
}

/// A value inside so many levels of objects.
fn nested(levels: usize, value: Json) -> Json {
    (0..levels).fold(value, |value, _| Json::Object(vec![("deep", value)]))
}

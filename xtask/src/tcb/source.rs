//! What one Rust file holds, counted by its tokens
//!
//! A line is code if a token of it stands there: a comment is none, and neither
//! a raw string nor a nested comment can pass for the other. Tests are left out
//! in one shape alone, `#[cfg(test)] mod name { … }`; whatever else is
//! compiled only sometimes is counted, and told.
//!
//! # Not here
//! Which files, and how many lines they may have (`tcb`).

use proc_macro2::{Delimiter, Group, Span, TokenStream, TokenTree, token_stream};
use std::collections::BTreeSet;

/// One file, as a reviewer meets it.
#[derive(Debug, Default)]
pub(super) struct Source {
    /// The numbers of the lines with code.
    pub(super) lines: BTreeSet<usize>,
    /// Every lint that is expected to speak.
    pub(super) expects: Vec<Expect>,
    /// Lines with code that is not what it seems, and why.
    pub(super) oddities: Vec<(usize, &'static str)>,
    /// The lines where a reply for a guest is made or unpacked.
    pub(super) crossings: Vec<usize>,
}

/// One `#[expect(…)]`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Expect {
    pub(super) line: usize,
    pub(super) lints: String,
    /// Empty where none is given.
    pub(super) reason: String,
}

/// Reads a file's text.
///
/// # Errors
/// It is not made of Rust's tokens.
pub(super) fn read(text: &str) -> Result<Source, String> {
    let mut source = Source::default();
    source.walk(text.parse().map_err(|why| format!("it is no Rust: {why}"))?);
    Ok(source)
}

impl Source {
    fn walk(&mut self, tokens: TokenStream) {
        let mut tokens = tokens.into_iter();
        while let Some(token) = tokens.next() {
            let Some((attribute, after)) = attribute(&token, &tokens) else {
                self.token(token, &tokens);
                continue;
            };
            match name(&attribute).as_str() {
                // What `///` and `//!` are to the compiler.
                "doc" if is_comment(&attribute) => tokens = after,
                "cfg" if is_test(&attribute) => match module(&after) {
                    Some(rest) => tokens = rest,
                    None => self.token(token, &tokens),
                },
                "expect" => {
                    self.expects.push(expect(&attribute));
                    self.token(token, &tokens);
                }
                "cfg" | "cfg_attr" => {
                    self.oddity(attribute.span(), "is compiled only sometimes");
                    self.token(token, &tokens);
                }
                "path" => {
                    self.oddity(attribute.span(), "moves a module out of its place");
                    self.token(token, &tokens);
                }
                _ => self.token(token, &tokens),
            }
        }
    }

    /// Counts a token; `after` is what follows it.
    fn token(&mut self, token: TokenTree, after: &token_stream::IntoIter) {
        match token {
            TokenTree::Group(group) => {
                self.lines.insert(group.span_open().start().line);
                self.lines.insert(group.span_close().end().line);
                self.walk(group.stream());
            }
            TokenTree::Ident(ident) => {
                let line = ident.span().start().line;
                self.lines.insert(line);
                let called = after.clone().next().is_some_and(|next| is_punct(&next, '!'));
                match ident.to_string().as_str() {
                    "lower" => self.crossings.push(line),
                    "Reply" if makes(after) => self.crossings.push(line),
                    "unsafe" => self.oddity(ident.span(), "is unsafe"),
                    "cfg" if called => self.oddity(ident.span(), "differs from build to build"),
                    "include" | "include_str" | "include_bytes" if called => {
                        self.oddity(ident.span(), "brings in a file that is not counted");
                    }
                    _ => {}
                }
            }
            TokenTree::Punct(_) | TokenTree::Literal(_) => {
                let span = token.span();
                self.lines.extend(span.start().line..=span.end().line);
            }
        }
    }

    fn oddity(&mut self, at: Span, why: &'static str) {
        self.oddities.push((at.start().line, why));
    }
}

/// Whether `::new` follows.
fn makes(after: &token_stream::IntoIter) -> bool {
    let mut after = after.clone();
    let colons = after.by_ref().take(2).filter(|token| is_punct(token, ':')).count();
    colons == 2 && matches!(after.next(), Some(TokenTree::Ident(word)) if word == "new")
}

/// The brackets of an attribute that begins with `token`, and what is after it.
fn attribute(
    token: &TokenTree,
    after: &token_stream::IntoIter,
) -> Option<(Group, token_stream::IntoIter)> {
    let mut after = after.clone();
    if !is_punct(token, '#') {
        return None;
    }
    let next = match after.next()? {
        inner if is_punct(&inner, '!') => after.next()?,
        next => next,
    };
    match next {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Bracket => Some((group, after)),
        _ => None,
    }
}

/// What is after `mod name { … }`, further attributes before it included; `None`
/// if something else stands here.
fn module(at: &token_stream::IntoIter) -> Option<token_stream::IntoIter> {
    let mut at = at.clone();
    let mut token = at.next()?;
    while let Some((_, after)) = attribute(&token, &at) {
        at = after;
        token = at.next()?;
    }
    let is_module = matches!(&token, TokenTree::Ident(word) if word == "mod");
    let named = matches!(at.next()?, TokenTree::Ident(_));
    let inline =
        matches!(at.next()?, TokenTree::Group(body) if body.delimiter() == Delimiter::Brace);
    (is_module && named && inline).then_some(at)
}

fn name(attribute: &Group) -> String {
    attribute.stream().into_iter().next().map(|word| word.to_string()).unwrap_or_default()
}

fn is_comment(attribute: &Group) -> bool {
    attribute.stream().into_iter().nth(1).is_some_and(|sign| is_punct(&sign, '='))
}

fn is_test(attribute: &Group) -> bool {
    matches!(attribute.stream().into_iter().nth(1),
        Some(TokenTree::Group(condition)) if condition.stream().to_string() == "test")
}

fn is_punct(token: &TokenTree, sign: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == sign)
}

fn expect(attribute: &Group) -> Expect {
    let line = attribute.span().start().line;
    let mut expect = Expect { line, lints: String::new(), reason: String::new() };
    let Some(TokenTree::Group(list)) = attribute.stream().into_iter().nth(1) else {
        return expect;
    };
    let tokens: Vec<TokenTree> = list.stream().into_iter().collect();
    for argument in tokens.split(|token| is_punct(token, ',')) {
        match argument {
            [TokenTree::Ident(key), _, TokenTree::Literal(reason)] if key == "reason" => {
                reason.to_string().trim_matches('"').clone_into(&mut expect.reason);
            }
            path => {
                let path: String = path.iter().map(ToString::to_string).collect();
                let comma = if expect.lints.is_empty() || path.is_empty() { "" } else { ", " };
                expect.lints.push_str(comma);
                expect.lints.push_str(&path);
            }
        }
    }
    expect
}

#[cfg(test)]
mod tests {
    use super::{Expect, read};

    fn lines(text: &str) -> Vec<usize> {
        read(text).unwrap().lines.into_iter().collect()
    }

    #[test]
    fn comments_and_blanks_are_no_code() {
        let text = "//! Header.\n\nuse a::b;\n\n/// Docs.\n#[derive(Debug)]\nstruct A {\n    \
                    /// Field.\n    a: u8, // why\n\n    // Comment.\n}\n#[doc(hidden)]\nfn f() {}\n\
                    /** Docs\n of two lines. */\nfn g() {}\n";
        assert_eq!(lines(text), [3, 6, 7, 9, 12, 13, 14, 17]);
    }

    #[test]
    fn neither_strings_nor_comments_pass_for_the_other() {
        for (text, expected) in [
            ("/* fn a() {}\n /* fn b() {} */\n fn c() {} */\nfn d() {}", &[4][..]),
            ("const A: &str = \"/*\";\nfn f() {}\nconst B: &str = \"*/\";", &[1, 2, 3]),
            ("const A: &str = r#\"\n\"// not a comment\n\n\"#;\n// one", &[1, 2, 3, 4]),
            ("const A: &str = \"\\\"//\";\nconst B: char = '\"';\n// \" '\nfn f() {}", &[1, 2, 4]),
            ("const A: u8 = b'\\'';\n/* ' */\nfn f<'a>(a: &'a u8) {}", &[1, 3]),
            ("const A: &[u8] = br##\"\n\"# #[cfg(test)] mod a {\n\"##;", &[1, 2, 3]),
            ("macro_rules! m {\n    // none\n    () => {};\n}", &[1, 3, 4]),
        ] {
            assert_eq!(lines(text), expected, "{text}");
        }
    }

    #[test]
    fn tests_are_left_out_in_one_shape_alone() {
        for (text, expected) in [
            (
                "fn f() {}\n#[cfg(test)]\n#[expect(a)]\nmod tests {\n fn g() {}\n}\nfn h() {}",
                &[1, 7][..],
            ),
            ("mod a {\n #[cfg(test)]\n mod tests {\n }\n}", &[1, 5]),
            ("#[cfg(test)]\nmod tests;", &[1, 2]),
            ("#[cfg(test)]\nfn f() {}", &[1, 2]),
            ("#[cfg(not(test))]\nmod a {}", &[1, 2]),
            ("#[cfg(any(test, a))]\nmod a {}", &[1, 2]),
            ("struct A {\n #[cfg(test)]\n r#mod: u8,\n b: B {}\n}", &[1, 2, 3, 4, 5]),
            ("const A: &str = \"\n#[cfg(test)]\nmod a {}\";", &[1, 2, 3]),
            ("// #[cfg(test)]\nmod a {}", &[2]),
        ] {
            assert_eq!(lines(text), expected, "{text}");
        }
    }

    #[test]
    fn what_a_count_of_lines_would_not_show_is_told() {
        for (text, expected) in [
            ("fn f() {\n #[cfg(debug_assertions)]\n g();\n}", &[(2, "is compiled only sometimes")]),
            ("#[cfg_attr(a, b)]\nfn f() {}", &[(1, "is compiled only sometimes")]),
            ("fn f() -> bool {\n cfg!(a)\n}", &[(2, "differs from build to build")]),
            ("include!(\"a\");", &[(1, "brings in a file that is not counted")]),
            ("#[path = \"a\"]\nmod b;", &[(1, "moves a module out of its place")]),
            ("fn f() {\n unsafe {}\n}", &[(2, "is unsafe")]),
        ] {
            assert_eq!(read(text).unwrap().oddities, expected, "{text}");
        }
        assert_eq!(read("fn f(cfg: u8) {\n // unsafe\n \"unsafe\";\n}").unwrap().oddities, []);
    }

    #[test]
    fn every_expected_lint_is_listed_with_its_reason() {
        let text = "#![expect(a, reason = \"one\")]\nfn f() {\n    #[expect(\n        b::c,\n        d,\n\
                    \n        reason = \"two\",\n    )]\n    g();\n    #[expect(e)]\n    h();\n}";
        let expect = |line, lints: &str, reason: &str| Expect {
            line,
            lints: lints.to_owned(),
            reason: reason.to_owned(),
        };
        let expected = [expect(1, "a", "one"), expect(3, "b::c, d", "two"), expect(10, "e", "")];
        assert_eq!(read(text).unwrap().expects, expected);
    }

    #[test]
    fn text_that_is_no_rust_is_an_error() {
        assert!(read("fn f() {").unwrap_err().starts_with("it is no Rust"));
    }
}

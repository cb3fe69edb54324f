//! Every order in which an attack's steps can stand among the user's own.
//!
//! # Not here
//! Which steps there are (`case`).

/// Where a step comes from: its place among the user's or the attacker's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum From {
    User(usize),
    Attack(usize),
}

/// All orders of `user` and `attack` steps, each kind in its own order, in which
/// no step of the attack comes before `first` steps of the user; at most `limit`.
/// The last one makes every step of the attack twice, at the end.
pub(crate) fn orders(user: usize, attack: usize, first: usize, limit: usize) -> Vec<Vec<From>> {
    let mut found = Vec::new();
    let mut start: Vec<_> = (0..first).map(From::User).collect();
    place(user, attack, &mut start, (first, 0), limit, &mut found);
    if attack > 0 {
        let twice = (0..attack).chain(0..attack).map(From::Attack);
        found.push((0..user).map(From::User).chain(twice).collect());
    }
    found
}

/// The places at which an attack's steps, in one go, stand among the user's own; one after each of the
/// user's; and all of them twice at the end. Where what is refused depends on the mark, which only
/// rises, and on the uses of warrants, which only fall, no other order helps the attacker more.
pub(crate) fn blocks(user: usize, attack: usize, first: usize) -> Vec<Vec<From>> {
    let users = |range: core::ops::Range<usize>| range.map(From::User);
    let attacks = || (0..attack).map(From::Attack);
    let mut found: Vec<Vec<From>> = (first..=user)
        .map(|at| users(0..at).chain(attacks()).chain(users(at..user)).collect())
        .collect();
    let mut between: Vec<From> = users(0..first).collect();
    let rest = user.saturating_sub(first).max(attack);
    for step in 0..rest {
        between.extend((step < attack).then_some(From::Attack(step)));
        between.extend(users(first..user).nth(step));
    }
    found.push(between);
    found.push(users(0..user).chain(attacks()).chain(attacks()).collect());
    found
}

fn place(
    user: usize,
    attack: usize,
    line: &mut Vec<From>,
    (users, attacks): (usize, usize),
    limit: usize,
    found: &mut Vec<Vec<From>>,
) {
    if found.len() >= limit {
        return;
    }
    if users == user && attacks == attack {
        found.push(line.clone());
        return;
    }
    if attacks < attack {
        line.push(From::Attack(attacks));
        place(user, attack, line, (users, attacks + 1), limit, found);
        line.pop();
    }
    if users < user {
        line.push(From::User(users));
        place(user, attack, line, (users + 1, attacks), limit, found);
        line.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_is_there_once_and_the_user_goes_first() {
        let all = orders(4, 3, 2, 100);
        // Two of the user's steps are left among three of the attack's.
        assert_eq!(all.len(), 10 + 1);
        for (index, line) in all.iter().enumerate() {
            assert!(line.starts_with(&[From::User(0), From::User(1)]), "{line:?}");
            assert!(!all.iter().skip(index + 1).any(|other| other == line), "{line:?}");
        }
        assert_eq!(orders(3, 0, 3, 100).len(), 1, "work alone");
        assert_eq!(orders(20, 10, 0, 50).len(), 51, "bounded");
    }
}

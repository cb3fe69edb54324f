//! A stand-in for the door, for tests of a guest on the host
//!
//! # Not here
//! Any decision: the closure answers as the test pleases.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::fmt;

/// Runs `body` with `door` answering every [`call`](crate::call) it makes on
/// this thread.
///
/// Doors nest; the former one answers again when `body` ends, by a panic too.
pub fn with_door<R>(
    door: impl FnMut(&[u8]) -> Result<Vec<u8>, u32> + 'static,
    body: impl FnOnce() -> R,
) -> R {
    let _former = Former(DOOR.replace(Some(Box::new(door))));
    body()
}

#[expect(clippy::panic, reason = "a call without a door is a mistake of the test, not an answer")]
pub(crate) fn call(sentence: &[u8]) -> Result<Vec<u8>, u32> {
    // Taken out while it answers, so that a door which calls itself is told.
    let Some(mut door) = DOOR.take() else {
        panic!("a guest called outside of a door; run it inside `testing::with_door`")
    };
    let answer = door(sentence);
    DOOR.set(Some(door));
    answer
}

type Door = Box<dyn FnMut(&[u8]) -> Result<Vec<u8>, u32>>;

std::thread_local! {
    static DOOR: RefCell<Option<Door>> = const { RefCell::new(None) };
}

struct Former(Option<Door>);

impl Drop for Former {
    fn drop(&mut self) {
        DOOR.set(self.0.take());
    }
}

impl fmt::Debug for Former {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Former")
    }
}

#[cfg(test)]
mod tests {
    use super::with_door;
    use crate::call;
    use alloc::rc::Rc;
    use alloc::vec;
    use alloc::vec::Vec;
    use core::cell::RefCell;

    #[test]
    fn door_sees_the_sentence_and_its_answer_comes_back() {
        let seen = Rc::new(RefCell::new(Vec::new()));
        let log = Rc::clone(&seen);
        let door = move |sentence: &[u8]| {
            log.borrow_mut().push(sentence.to_vec());
            if sentence == b"one" { Ok(vec![1]) } else { Err(7) }
        };
        let answers = with_door(door, || (call(b"one"), call(b"two")));
        assert_eq!(answers, (Ok(vec![1]), Err(7)));
        assert_eq!(*seen.borrow(), [b"one".to_vec(), b"two".to_vec()]);
    }

    #[test]
    fn inner_door_gives_way_to_the_outer() {
        let answers =
            with_door(|_| Err(1), || (call(b""), with_door(|_| Err(2), || call(b"")), call(b"")));
        assert_eq!(answers, (Err(1), Err(2), Err(1)));
    }

    #[test]
    #[should_panic(expected = "outside of a door")]
    fn call_without_a_door_fails_the_test() {
        let _ = call(b"one");
    }
}

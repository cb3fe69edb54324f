//! Refusals: how policy says no.
//!
//! A refusal crosses the door as one number, never as text: text from a failure
//! would be one more way for the outside to talk to a model. The hundreds digit is
//! the gate. Numbers are stable; later versions add.
//!
//! # Not here
//! Faults (the world said no) and what codes are called (`synapse-reply`).

crate::numbered! {
    /// Why a gate said no.
    pub enum Refusal: u16 {
        /// Not a sentence of the grammar, or not UTF-8.
        Malformed = 101,
        /// A sentence or one of its arguments is over its limit.
        TooLong = 102,
        /// No primitive has this name.
        NoSuchPrimitive = 103,
        /// A Url or a Host is not in its one canonical form.
        NotCanonical = 104,
        /// The task's table does not grant this primitive.
        NotGranted = 201,
        /// No live handle or held value of this kind has this number.
        NoSuchHandle = 202,
        /// The task's budget of calls is spent.
        Budget = 203,
        /// A destructive call whose justification came from outside.
        Destructive = 301,
        /// A protected name, from a justification that came from outside.
        Protected = 302,
        /// What would be displaced does not fit the journal, after reading.
        Irreversible = 303,
        /// Egress of a compartment that the destination is not cleared for.
        NotCleared = 304,
        /// A warrant asked for after something from outside was read.
        Tainted = 305,
        /// A warrant whose target no line of the human names.
        NotCited = 306,
        /// The citation has no uses left.
        Spent = 307,
        /// Text sent under a warrant carries a link nobody vouched for.
        Link = 308,
        /// The human said no, or could not be asked.
        Declined = 309,
        /// This version mints no warrants of this kind.
        Unsupported = 310,
        /// No entry of the grant covers the target.
        OutOfScope = 401,
        /// A deny entry covers the target.
        Denied = 402,
        /// A path that does not begin with `/`.
        NotAbsolute = 403,
        /// A path that climbs above the root.
        AboveRoot = 404,
        /// A path with a component that some file system reads as another.
        BadName = 405,
        /// A path, or one of its components, that is too long or too deep.
        TooDeep = 406,
        /// An argument outside the limit that the grant sets for it.
        OverLimit = 407,
        /// Part of the subtree a call would touch lies outside the scope.
        Subtree = 408,
        /// A held Url or Host that is not in its one canonical form, or too long.
        NoPlace = 409,
        /// A secret that may not go there, or that is a part of a value.
        Secret = 410,
    }
}

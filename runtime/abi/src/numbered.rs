//! Enums whose numbers are part of a format.

/// An enum with stable numbers: `number`, `from_number` and `ALL` are read off
/// one list.
#[macro_export]
macro_rules! numbered {
    ($(#[$outer:meta])* pub enum $name:ident: $repr:ident {
        $($(#[$meta:meta])* $variant:ident = $number:literal,)*
    }) => {
        $(#[$outer])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr($repr)]
        pub enum $name { $($(#[$meta])* $variant = $number,)* }

        impl $name {
            /// All of them, in order of number.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The stable number.
            pub const fn number(self) -> $repr {
                match self { $(Self::$variant => $number,)* }
            }

            /// The one with this number, if there is one.
            pub const fn from_number(number: $repr) -> Option<Self> {
                match number { $($number => Some(Self::$variant),)* _ => None }
            }
        }
    };
}

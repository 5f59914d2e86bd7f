//! Enums whose variants have names.

/// Makes an enum of which every variant has a name, such as `RingFull = "ring_full"`: with `ALL`, in
/// the order in which they are shown, and `name()`, as in JSON and in tables.
#[macro_export]
macro_rules! named {
    (
        $(#[$meta:meta])*
        $vis:vis enum $enum:ident { $($(#[$doc:meta])* $variant:ident = $name:literal,)* }
    ) => {
        $(#[$meta])*
        $vis enum $enum { $($(#[$doc])* $variant),* }

        impl $enum {
            /// Every one, in the order in which they are shown.
            $vis const ALL: [$enum; [$($enum::$variant),*].len()] = [$($enum::$variant),*];

            /// Its name in JSON and in tables.
            $vis fn name(self) -> &'static str {
                match self { $($enum::$variant => $name),* }
            }
        }
    };
}

//! The notation in which the classes are written down.
//!
//! Owns what follows for each method from its list of arguments: a struct, its decoder and its encoder. Must not know any method.

/// Defines `CLASS`, one struct per method, and the enum `Method` of them all.
///
/// The head names class and enum, the latter also as what a method without a lifetime becomes. Arguments are given in their order on the wire, with bits (there is at most one run of them in a method) in brackets.
macro_rules! class {
    (
        $class:literal $class_name:literal $(<$enum_life:lifetime>)? => $owned:ty;
        $(
            $(#[$doc:meta])+
            $name:ident $(<$life:lifetime>)? = $id:literal {
                $($before:ident: $before_type:ty,)*
                $([$($bit:ident),+] $(, $after:ident: $after_type:ty)* $(,)?)?
            }
        )+
    ) => {
        #[allow(unused_imports, reason = "not every class has arguments of every kind")]
        use $crate::codec::{Malformed, MethodId, Reader, Writer, method::field::Field};

        /// The number of the class.
        pub const CLASS: u16 = $class;

        $(
            $(#[$doc])+
            #[derive(Debug, Clone, PartialEq, Default)]
            pub struct $name $(<$life>)? {
                $(#[doc = class!(@doc $before)] pub $before: $before_type,)*
                $(
                    $(#[doc = class!(@doc $bit)] pub $bit: bool,)+
                    $(#[doc = class!(@doc $after)] pub $after: $after_type,)*
                )?
            }

            impl $(<$life>)? $name $(<$life>)? {
                /// The numbers of class and method.
                pub const ID: MethodId = MethodId { class: $class, method: $id };

                #[allow(clippy::unnecessary_wraps, clippy::elidable_lifetime_names, unused_variables, reason = "some methods have no arguments")]
                fn decode<'r $(: $life)?>(reader: &mut Reader<'r>) -> Result<Self, Malformed> {
                    $(let $before = <$before_type as Field<'r>>::read(reader)?;)*
                    $(
                        let [$($bit),+] = reader.bits()?;
                        $(let $after = <$after_type as Field<'r>>::read(reader)?;)*
                    )?
                    Ok(Self { $($before,)* $($($bit,)+ $($after,)*)? })
                }

                /// Appends the whole method frame.
                pub fn encode(&self, channel: u16, out: &mut Vec<u8>) {
                    $crate::codec::method::write_frame(Self::ID, channel, out, |writer| self.write(writer));
                }

                #[cfg(test)]
                #[allow(clippy::elidable_lifetime_names, unused_variables, reason = "some methods have no arguments")]
                fn sample<'r $(: $life)?>(sample: &mut $crate::codec::method::sample::Sample<'r>) -> Self {
                    Self {
                        $($before: <$before_type as $crate::codec::method::sample::Drawn<'r>>::draw(sample),)*
                        $(
                            $($bit: <bool as $crate::codec::method::sample::Drawn<'r>>::draw(sample),)+
                            $($after: <$after_type as $crate::codec::method::sample::Drawn<'r>>::draw(sample),)*
                        )?
                    }
                }

                #[allow(unused_variables, clippy::unused_self, reason = "some methods have no arguments")]
                fn write(&self, writer: &mut Writer<'_>) {
                    $(self.$before.write(writer);)*
                    $(
                        writer.bits([$(self.$bit),+]);
                        $(self.$after.write(writer);)*
                    )?
                }
            }

            class!(@from $owned, $name $(<$life>)?);
        )+

        #[doc = concat!("Any method of class ", $class_name, ".")]
        #[derive(Debug, Clone, PartialEq)]
        #[expect(missing_docs, reason = "each variant is named like the struct it holds, which is documented")]
        pub enum Method $(<$enum_life>)? {
            $($name($name $(<$life>)?),)+
        }

        impl $(<$enum_life>)? Method $(<$enum_life>)? {
            /// `None` if the class has no such method.
            #[allow(clippy::elidable_lifetime_names, reason = "not every class borrows")]
            pub(super) fn decode<'r $(: $enum_life)?>(id: u16, reader: &mut Reader<'r>) -> Result<Option<Self>, Malformed> {
                Ok(Some(match id {
                    $($id => Self::$name($name::decode(reader)?),)+
                    _ => return Ok(None),
                }))
            }

            /// Appends the whole method frame.
            pub fn encode(&self, channel: u16, out: &mut Vec<u8>) {
                match self {
                    $(Self::$name(method) => method.encode(channel, out),)+
                }
            }

            /// One of every method, its arguments drawn from `sample`.
            #[cfg(test)]
            #[allow(clippy::elidable_lifetime_names, reason = "not every class borrows")]
            pub(super) fn sample_each<'r $(: $enum_life)?>(
                sample: &mut $crate::codec::method::sample::Sample<'r>,
            ) -> impl Iterator<Item = Self> + use<$($enum_life,)? 'r> {
                vec![$(Self::$name($name::sample(sample)),)+].into_iter()
            }

            /// Which method this is.
            pub const fn id(&self) -> MethodId {
                match self {
                    $(Self::$name(_) => $name::ID,)+
                }
            }
        }
    };
    (@from $owned:ty, $name:ident) => {
        impl From<$name> for $owned {
            fn from(method: $name) -> Self {
                Self::$name(method)
            }
        }

        impl From<$name> for $crate::codec::Method<'_> {
            fn from(method: $name) -> Self {
                Method::$name(method).into()
            }
        }
    };
    (@from $owned:ty, $name:ident<$life:lifetime>) => {
        impl<$life> From<$name<$life>> for Method<$life> {
            fn from(method: $name<$life>) -> Self {
                Self::$name(method)
            }
        }

        impl<$life> From<$name<$life>> for $crate::codec::Method<$life> {
            fn from(method: $name<$life>) -> Self {
                Method::$name(method).into()
            }
        }
    };
    (@doc $argument:ident) => {
        concat!("`", stringify!($argument), "`")
    };
}

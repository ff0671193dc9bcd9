//! A node number made of smaller ones.

use std::error::Error;
use std::fmt;

/// Named parts of a node number, from the highest bits to the lowest.
///
/// For fleets that number their nodes by place or kind, as in "datacenter 3, machine 17". It works
/// on the node alone and knows no layout; choose parts with as many [`bits`](Self::bits) as the
/// layout's [`node_bits`](crate::Layout::node_bits). Cost: a handful of comparisons of short names,
/// without allocation unless there is an error.
///
/// # Examples
///
/// ```
/// use ringflake::{Layout, NodeFields};
///
/// let fields = NodeFields::DATACENTER_MACHINE;
/// assert_eq!(fields.bits(), Layout::TWITTER.node_bits());
///
/// let node = fields.compose(&[("datacenter", 3), ("machine", 17)])?;
/// assert_eq!(node, 3 << 5 | 17);
/// assert!(fields.split(node)?.eq([("datacenter", 3), ("machine", 17)]));
/// # Ok::<(), ringflake::NodeFieldsError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NodeFields<'a> {
    /// Names that differ, and widths of at least 1 that add up to
    /// [`MAX_BITS`] or less.
    fields: &'a [(&'a str, u32)],
}

/// The widest node field that a layout can have.
const MAX_BITS: u32 = 62;

impl NodeFields<'static> {
    /// `datacenter` (5 bits) and `machine` (5 bits), as Twitter's Snowflake has
    /// them. For [`TWITTER`](crate::Layout::TWITTER) and
    /// [`JS_SAFE`](crate::Layout::JS_SAFE).
    pub const DATACENTER_MACHINE: Self = Self {
        fields: &[("datacenter", 5), ("machine", 5)],
    };

    /// `region` (6 bits), `type` (14 bits) and `machine` (2 bits). For
    /// [`REGION_TYPE_MACHINE`](crate::Layout::REGION_TYPE_MACHINE) and other layouts of 22
    /// node bits.
    pub const REGION_TYPE_MACHINE: Self = Self {
        fields: &[("region", 6), ("type", 14), ("machine", 2)],
    };
}

impl<'a> NodeFields<'a> {
    /// Fields by name and width in bits, from the highest to the lowest.
    ///
    /// # Errors
    ///
    /// - [`NodeFieldsError::NoFields`]: the slice is empty.
    /// - [`NodeFieldsError::ZeroWidth`]: a field has no bits.
    /// - [`NodeFieldsError::Repeated`]: two fields have one name.
    /// - [`NodeFieldsError::TooManyBits`]: the widths add up to more than 62.
    ///
    /// # Examples
    ///
    /// ```
    /// use ringflake::{Layout, NodeFields};
    ///
    /// let fields = NodeFields::new(&[("rack", 9), ("slot", 8)])?;
    /// assert_eq!(fields.bits(), Layout::RANDFLAKE.node_bits());
    /// # Ok::<(), ringflake::NodeFieldsError>(())
    /// ```
    pub fn new(fields: &'a [(&'a str, u32)]) -> Result<Self, NodeFieldsError> {
        if fields.is_empty() {
            return Err(NodeFieldsError::NoFields);
        }
        refuse_repeated(fields)?;
        let mut bits = 0_u32;
        for &(name, width) in fields {
            if width == 0 {
                return Err(NodeFieldsError::ZeroWidth { name: name.into() });
            }
            bits = bits.saturating_add(width);
        }
        if bits > MAX_BITS {
            return Err(NodeFieldsError::TooManyBits {
                bits,
                max: MAX_BITS,
            });
        }
        Ok(Self { fields })
    }

    /// Bits of all fields together, 1 to 62.
    pub fn bits(self) -> u32 {
        self.fields.iter().map(|(_, width)| width).sum()
    }

    /// Makes a node number of one value for each field, in any order.
    ///
    /// # Errors
    ///
    /// - [`NodeFieldsError::Unknown`]: a name is not one of the fields.
    /// - [`NodeFieldsError::Repeated`]: a name is given more than once.
    /// - [`NodeFieldsError::Missing`]: a field has no value.
    /// - [`NodeFieldsError::OutOfRange`]: a value does not fit its field.
    ///
    /// # Examples
    ///
    /// ```
    /// use ringflake::NodeFields;
    ///
    /// let error = NodeFields::DATACENTER_MACHINE
    ///     .compose(&[("machine", 32), ("datacenter", 1)])
    ///     .unwrap_err();
    /// assert_eq!(error.to_string(), "machine 32 is out of range: give 0 to 31");
    /// ```
    #[doc(alias = "pack")]
    pub fn compose(self, values: &[(&str, u64)]) -> Result<u64, NodeFieldsError> {
        if let Some((name, _)) = values.iter().find(|(name, _)| !self.has(name)) {
            return Err(NodeFieldsError::Unknown {
                name: (*name).into(),
                known: self.fields.iter().map(|&(name, _)| name.into()).collect(),
            });
        }
        refuse_repeated(values)?;
        self.fields.iter().try_fold(0, |node, &(name, width)| {
            let Some(&(_, value)) = values.iter().find(|(given, _)| *given == name) else {
                return Err(NodeFieldsError::Missing { name: name.into() });
            };
            let max = max_of(width);
            if value > max {
                return Err(NodeFieldsError::OutOfRange {
                    name: name.into(),
                    value,
                    max,
                });
            }
            Ok(node << width | value)
        })
    }

    /// The fields of a node number by name, from the highest to the lowest.
    ///
    /// # Errors
    ///
    /// [`NodeFieldsError::NodeOutOfRange`] if `node` has more than
    /// [`bits`](Self::bits) bits.
    #[doc(alias = "unpack")]
    pub fn split(
        self,
        node: u64,
    ) -> Result<impl Iterator<Item = (&'a str, u64)> + use<'a>, NodeFieldsError> {
        let mut below = self.bits();
        let max = max_of(below);
        if node > max {
            return Err(NodeFieldsError::NodeOutOfRange { node, max });
        }
        Ok(self.fields.iter().map(move |&(name, width)| {
            below -= width;
            (name, (node >> below) & max_of(width))
        }))
    }

    fn has(self, name: &str) -> bool {
        self.fields.iter().any(|&(known, _)| known == name)
    }
}

/// The largest value of a field; `width` is at most [`MAX_BITS`].
fn max_of(width: u32) -> u64 {
    (1 << width) - 1
}

fn refuse_repeated<T>(named: &[(&str, T)]) -> Result<(), NodeFieldsError> {
    for (index, &(name, _)) in named.iter().enumerate() {
        if named
            .iter()
            .take(index)
            .any(|&(earlier, _)| earlier == name)
        {
            return Err(NodeFieldsError::Repeated { name: name.into() });
        }
    }
    Ok(())
}

/// Why [`NodeFields`] cannot be made, or do not fit what they were given.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeFieldsError {
    /// There are no fields.
    NoFields,
    /// A field has no bits.
    ZeroWidth {
        /// Its name.
        name: String,
    },
    /// The widths add up to more than a node can have.
    TooManyBits {
        /// Their sum.
        bits: u32,
        /// The largest sum allowed.
        max: u32,
    },
    /// A name stands more than once.
    Repeated {
        /// The name.
        name: String,
    },
    /// A name is not one of the fields.
    Unknown {
        /// The name.
        name: String,
        /// The names of the fields.
        known: Vec<String>,
    },
    /// A field was given no value.
    Missing {
        /// Its name.
        name: String,
    },
    /// A value does not fit its field.
    OutOfRange {
        /// The field's name.
        name: String,
        /// The value given.
        value: u64,
        /// The largest value allowed; the smallest is 0.
        max: u64,
    },
    /// A node number does not fit the fields.
    NodeOutOfRange {
        /// The number given.
        node: u64,
        /// The largest number allowed; the smallest is 0.
        max: u64,
    },
}

impl fmt::Display for NodeFieldsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoFields => {
                f.write_str("a node needs at least one field: name one, with its bits")
            }
            Self::ZeroWidth { name } => {
                write!(f, "the field {name} has 0 bits; give it at least 1")
            }
            Self::TooManyBits { bits, max } => {
                write!(
                    f,
                    "the fields have {bits} bits; together they may be 1 to {max}"
                )
            }
            Self::Repeated { name } => {
                write!(
                    f,
                    "the field {name} is given more than once; give each field once"
                )
            }
            Self::Unknown { name, known } => {
                write!(
                    f,
                    "there is no field {name:?}; the fields are {}",
                    known.join(", ")
                )
            }
            Self::Missing { name } => {
                write!(f, "the field {name} has no value; give each field once")
            }
            Self::OutOfRange { name, value, max } => {
                write!(f, "{name} {value} is out of range: give 0 to {max}")
            }
            Self::NodeOutOfRange { node, max } => {
                write!(f, "node {node} is out of range: the fields have 0 to {max}")
            }
        }
    }
}

impl Error for NodeFieldsError {}

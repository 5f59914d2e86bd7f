//! What a connection says to the process that runs the driver, and what is said back, in frames: a length of four bytes,
//! then as many bytes of postcard.

use std::fmt;
use std::io::{self, Read, Write};

use serde::de::{DeserializeOwned, Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_bytes::ByteBuf;

use super::{ConnectionError, Endpoint, PACKET_BYTES_MAX};
use crate::Secret;
use crate::options::Options;

/// The most columns of a result: no server has more.
pub(super) const COLUMNS_MAX: usize = 4096;
/// The longest frame: a row, with what its values need beside their bytes.
const FRAME_MAX: usize = PACKET_BYTES_MAX + 16 * COLUMNS_MAX;

#[derive(Serialize, Deserialize)]
pub(super) enum Ask {
    Rows(String),
    Database(String),
}

#[derive(Serialize, Deserialize)]
pub(super) enum Said {
    /// The id of the connection.
    LoggedIn(u32),
    Row(#[serde(deserialize_with = "columns")] Vec<Option<ByteBuf>>),
    /// The answer is whole.
    Done,
    Failed(ConnectionError),
}

pub(super) fn write(out: &mut impl Write, what: &impl Serialize) -> io::Result<()> {
    let bytes = postcard::to_stdvec(what).map_err(io::Error::other)?;
    let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
    out.write_all(&length.to_le_bytes())?;
    out.write_all(&bytes)
}

/// The next frame; `None` where nobody says any more.
pub(super) fn read<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<Option<T>> {
    let mut head = [0; 4];
    match from.read_exact(&mut head) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        done => done?,
    }
    let length = u32::from_le_bytes(head) as usize;
    if length > FRAME_MAX {
        return Err(io::Error::other("a frame is too long"));
    }
    // It takes memory for what comes, not for what is announced.
    let mut bytes = Vec::new();
    from.by_ref().take(length as u64).read_to_end(&mut bytes)?;
    postcard::from_bytes(&bytes).map(Some).map_err(io::Error::other)
}

/// Says where to log in, and as whom. The password is no part of the options that are written: it goes by itself, without
/// a copy.
pub(super) fn write_login(
    out: &mut impl Write,
    options: &Options,
    endpoint: &Endpoint,
) -> io::Result<()> {
    let password = options.password.as_ref().map(Secret::reveal);
    write(out, &(options, endpoint, password.map(|password| password.len() as u32)))?;
    out.write_all(password.unwrap_or_default())
}

/// The same as it is heard; `None` where nobody says anything.
pub(super) fn read_login(from: &mut impl Read) -> io::Result<Option<(Options, Endpoint)>> {
    let login = read::<(Options, Endpoint, Option<u32>)>(from)?;
    let Some((mut options, endpoint, length)) = login else { return Ok(None) };
    if let Some(length) = length {
        let mut password = vec![0; length.min(FRAME_MAX as u32) as usize];
        from.read_exact(&mut password)?;
        options.password = Some(Secret::new(password));
    }
    Ok(Some((options, endpoint)))
}

/// A row with no more columns than a server has: an empty value takes a byte of a frame, and 24 of memory.
fn columns<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Option<ByteBuf>>, D::Error> {
    struct Columns;
    impl<'de> Visitor<'de> for Columns {
        type Value = Vec<Option<ByteBuf>>;

        fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(out, "at most {COLUMNS_MAX} values")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Self::Value, A::Error> {
            let mut row =
                Vec::with_capacity(values.size_hint().unwrap_or_default().min(COLUMNS_MAX));
            while let Some(value) = values.next_element()? {
                if row.len() == COLUMNS_MAX {
                    return Err(A::Error::invalid_length(row.len() + 1, &self));
                }
                row.push(value);
            }
            Ok(row)
        }
    }
    from.deserialize_seq(Columns)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_frame_makes_anything_panic(kind in 0_u8..5, rest in any::<Vec<u8>>()) {
            let frame = [&(1 + rest.len() as u32).to_le_bytes()[..], &[kind], &rest].concat();
            let _ = read::<Said>(&mut frame.as_slice());
        }
    }

    fn again(said: &Said) -> io::Result<Option<Said>> {
        let mut frame = Vec::new();
        write(&mut frame, said).unwrap();
        read(&mut frame.as_slice())
    }

    #[test]
    fn a_row_comes_back_as_it_was() {
        let row = vec![None, Some(ByteBuf::new()), Some(ByteBuf::from(vec![0, 255]))];
        let Some(Said::Row(read)) = again(&Said::Row(row.clone())).unwrap() else { panic!() };
        assert_eq!((read.capacity(), &read), (row.len(), &row), "rows take what is counted");
    }

    #[test]
    fn what_no_child_of_ours_says_is_an_error() {
        let wide = vec![None; COLUMNS_MAX + 1];
        assert!(again(&Said::Row(wide)).is_err());
        assert!(again(&Said::Row(vec![None; COLUMNS_MAX])).is_ok());
        for frame in
            [&[255; 9][..], &[1, 0, 0, 0, 9], &[4, 0, 0, 0, 1, 255, 255, 255], &[3, 0, 0, 0]]
        {
            assert!(read::<Said>(&mut &frame[..]).is_err(), "{frame:?}");
        }
        assert!(read::<Said>(&mut &[][..]).unwrap().is_none(), "nobody speaks");
    }

    #[test]
    fn the_password_goes_beside_the_options() {
        let options =
            Options { password: Some(Secret::new(b"hunter2".to_vec())), ..Options::default() };
        let bytes = postcard::to_stdvec(&options).unwrap();
        assert!(!bytes.windows(7).any(|window| window == b"hunter2"));
        let endpoint = Endpoint::Socket("/a/b".into());
        for password in [options.password.clone(), Some(Secret::default()), None] {
            let options = Options { password, ..options.clone() };
            let mut said = Vec::new();
            write_login(&mut said, &options, &endpoint).unwrap();
            let read = read_login(&mut said.as_slice()).unwrap();
            assert_eq!(read, Some((options, endpoint.clone())));
        }
        assert_eq!(read_login(&mut &[][..]).unwrap(), None);
    }
}

//! Packets on a stream, plain or compressed.

use std::io::{self, Read, Write};
use std::net::Shutdown;

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;

use super::stream::Stream;
use crate::{Error, Result};

/// The largest content of one packet; longer ones are split.
const PACKET_LIMIT: usize = 0xff_ffff;
/// Shorter frames are sent as they are (`MIN_COMPRESS_LENGTH`, include/my_sys.h).
const COMPRESS_FROM: usize = 50;
const READ_SIZE: usize = 64 << 10;

#[derive(Debug)]
pub(super) struct Wire {
    pub(super) stream: Stream,
    /// Content for the next file that the server asks for (`LOAD DATA LOCAL`).
    pub(super) local_data: Vec<u8>,
    compressed: bool,
    sequence: u8,
    frame_sequence: u8,
    buffer: Vec<u8>,
    /// How much of the buffer is used up.
    used: usize,
}

impl Wire {
    pub(super) fn new(stream: Stream) -> Self {
        Self {
            stream,
            local_data: Vec::new(),
            compressed: false,
            sequence: 0,
            frame_sequence: 0,
            buffer: Vec::new(),
            used: 0,
        }
    }

    /// From here on packets travel in compressed frames.
    pub(super) fn compress(&mut self) {
        self.compressed = true;
    }

    /// The same conversation over another stream, for the change to TLS. The server waits for
    /// the client then, so that nothing can be left in the buffer.
    pub(super) fn over(self, change: impl FnOnce(Stream) -> Result<Stream>) -> Result<Self> {
        Ok(Self { stream: change(self.stream)?, ..self })
    }

    pub(super) fn tls_version(&self) -> Option<&'static str> {
        match &self.stream {
            Stream::Tls(stream) => Some(stream.ssl().version_str()),
            Stream::Tcp(_) | Stream::Unix(_) => None,
        }
    }

    pub(super) fn begin_command(&mut self) {
        self.sequence = 0;
        self.frame_sequence = 0;
    }

    pub(super) fn write_packet(&mut self, payload: &[u8]) -> Result<()> {
        let mut bytes = Vec::with_capacity(payload.len() + 4);
        let mut rest = payload;
        loop {
            let (now, later) = rest.split_at(rest.len().min(PACKET_LIMIT));
            bytes.extend(length3(now.len()));
            bytes.push(self.sequence);
            bytes.extend(now);
            self.sequence = self.sequence.wrapping_add(1);
            rest = later;
            // A packet of the full length says that another follows, be it empty.
            if now.len() < PACKET_LIMIT {
                break;
            }
        }
        let sent = if self.compressed { self.write_frames(&bytes) } else { self.write_all(&bytes) };
        sent.map_err(Error::connection)
    }

    /// Reads one packet, joined if it was split.
    pub(super) fn read_packet(&mut self) -> Result<Vec<u8>> {
        let mut payload = Vec::new();
        loop {
            let mut header = [0; 4];
            self.read_exact(&mut header).map_err(Error::connection)?;
            let length = usize_of(&header[..3]);
            self.sequence = header[3].wrapping_add(1);
            let from = payload.len();
            payload.resize(from + length, 0);
            self.read_exact(&mut payload[from..]).map_err(Error::connection)?;
            if length < PACKET_LIMIT {
                return Ok(payload);
            }
        }
    }

    /// Reads and drops what comes until the other side closes; an error counts as closed.
    pub(super) fn read_to_close(&mut self) {
        let mut bytes = [0; 4096];
        while matches!(self.stream.read(&mut bytes), Ok(1..)) {}
    }

    pub(super) fn shutdown(&self, how: Shutdown) {
        // A connection that the server has closed cannot be shut down, and need not be.
        let _ = self.stream.shutdown(how);
    }

    pub(super) fn reset_at_close(&self) -> Result<()> {
        self.stream.reset_at_close().map_err(Error::connection)
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)?;
        self.stream.flush()
    }

    fn write_frames(&mut self, bytes: &[u8]) -> io::Result<()> {
        for chunk in bytes.chunks(PACKET_LIMIT) {
            let (content, full_length) = if chunk.len() < COMPRESS_FROM {
                (chunk.to_vec(), 0)
            } else {
                let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
                encoder.write_all(chunk)?;
                (encoder.finish()?, chunk.len())
            };
            let mut frame = length3(content.len()).to_vec();
            frame.push(self.frame_sequence);
            frame.extend(length3(full_length));
            frame.extend(content);
            self.frame_sequence = self.frame_sequence.wrapping_add(1);
            self.write_all(&frame)?;
        }
        Ok(())
    }

    fn read_exact(&mut self, mut target: &mut [u8]) -> io::Result<()> {
        while !target.is_empty() {
            if self.used == self.buffer.len() {
                self.fill()?;
            }
            let length = target.len().min(self.buffer.len() - self.used);
            let (now, later) = target.split_at_mut(length);
            now.copy_from_slice(&self.buffer[self.used..self.used + length]);
            self.used += length;
            target = later;
        }
        Ok(())
    }

    /// Reads what is there, after a stop and a continuation of the process too: a read with a time limit ends
    /// then without a signal handler (`signal(7)`, "Interruption of system calls … by stop signals").
    fn read_once(&mut self) -> io::Result<usize> {
        loop {
            match self.stream.read(&mut self.buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => return read,
            }
        }
    }

    /// Reads more into the empty buffer.
    fn fill(&mut self) -> io::Result<()> {
        self.used = 0;
        if !self.compressed {
            self.buffer.resize(READ_SIZE, 0);
            let read = self.read_once();
            self.buffer.truncate(*read.as_ref().unwrap_or(&0));
            return match read? {
                0 => Err(io::ErrorKind::UnexpectedEof.into()),
                _ => Ok(()),
            };
        }
        let mut header = [0; 7];
        self.buffer.clear();
        self.stream.read_exact(&mut header)?;
        let mut content = vec![0; usize_of(&header[..3])];
        self.stream.read_exact(&mut content)?;
        self.frame_sequence = header[3].wrapping_add(1);
        match usize_of(&header[4..7]) {
            0 => self.buffer = content,
            length => {
                self.buffer.reserve(length);
                ZlibDecoder::new(content.as_slice()).read_to_end(&mut self.buffer)?;
            }
        }
        Ok(())
    }
}

/// The three low bytes of a length, lowest first.
fn length3(length: usize) -> [u8; 3] {
    let bytes = length.to_le_bytes();
    [bytes[0], bytes[1], bytes[2]]
}

fn usize_of(bytes: &[u8]) -> usize {
    bytes.iter().rev().fold(0, |number, &byte| number << 8 | usize::from(byte))
}

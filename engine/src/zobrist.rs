//! Keys that identify positions, drawn at compile time.

use crate::types::{Color, Kind, Square};

struct Keys {
    pieces: [[[u64; 64]; 6]; 2],
    castling: [u64; 16],
    en_passant: [u64; 8],
    black_to_move: u64,
}

static KEYS: Keys = draw();

/// One step of splitmix64: the next state and the number drawn.
const fn splitmix(state: u64) -> (u64, u64) {
    let state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (state, z ^ (z >> 31))
}

const fn draw() -> Keys {
    let mut keys =
        Keys { pieces: [[[0; 64]; 6]; 2], castling: [0; 16], en_passant: [0; 8], black_to_move: 0 };
    let mut state = 0x0064_6961_7061_736F;
    let mut i = 0;
    while i < 2 * 6 * 64 {
        (state, keys.pieces[i / 384][i / 64 % 6][i % 64]) = splitmix(state);
        i += 1;
    }
    i = 1; // no right to castle has no key
    while i < 16 {
        (state, keys.castling[i]) = splitmix(state);
        i += 1;
    }
    i = 0;
    while i < 8 {
        (state, keys.en_passant[i]) = splitmix(state);
        i += 1;
    }
    (_, keys.black_to_move) = splitmix(state);
    keys
}

#[inline]
pub fn piece(color: Color, kind: Kind, square: Square) -> u64 {
    KEYS.pieces[color as usize][kind as usize][square & 63]
}

#[inline]
pub fn castling(rights: u8) -> u64 {
    KEYS.castling[(rights & 15) as usize]
}

#[inline]
pub fn en_passant(square: Square) -> u64 {
    KEYS.en_passant[square & 7]
}

#[inline]
pub fn black_to_move() -> u64 {
    KEYS.black_to_move
}

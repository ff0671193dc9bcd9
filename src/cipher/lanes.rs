//! How the bytes of eight 16-bit lanes are shuffled, to move some of them together and back,
//! where no instruction does that: SSE4.1, AVX2, NEON.

/// For each choice of lanes, a bit for each, 16 bytes: places of bytes in a vector.
type Orders = [[u8; 16]; 256];

/// A place that does not exist. Shuffles have zeros for it, and blends keep what was there.
const NOWHERE: u8 = 0x80;

static COMPRESSED: Orders = orders(true);
static EXPANDED: Orders = orders(false);

const fn orders(are_compressed: bool) -> Orders {
    let mut orders = [[NOWHERE; 16]; 256];
    let mut bits = 0;
    while bits < 256 {
        let (mut lane, mut chosen) = (0, 0);
        while lane < 8 {
            if bits >> lane & 1 == 1 {
                let (to, from) = if are_compressed {
                    (chosen, lane)
                } else {
                    (lane, chosen)
                };
                orders[bits][2 * to] = 2 * from as u8;
                orders[bits][2 * to + 1] = 2 * from as u8 + 1;
                chosen += 1;
            }
            lane += 1;
        }
        bits += 1;
    }
    orders
}

/// The lanes whose bit is set, side by side. Of `bits` the lowest eight count.
#[inline(always)]
pub(super) fn compressed(bits: u32) -> &'static [u8; 16] {
    &COMPRESSED[usize::from(bits as u8)]
}

/// For the lanes whose bit is set, the next of those that are side by side. Of `bits` the lowest
/// eight count.
#[inline(always)]
pub(super) fn expanded(bits: u32) -> &'static [u8; 16] {
    &EXPANDED[usize::from(bits as u8)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shuffled(from: [u8; 16], order: &[u8; 16]) -> [u8; 16] {
        order.map(|place| from.get(usize::from(place)).copied().unwrap_or(0xee))
    }

    #[test]
    fn lanes_are_moved_together_and_back() {
        let lanes: [u8; 16] = std::array::from_fn(|byte| 0x40 + byte as u8);
        for bits in 0..=255 {
            let chosen = (0..8).filter(|lane| bits >> lane & 1 == 1);
            let together: Vec<_> = chosen.flat_map(|lane| [2 * lane, 2 * lane + 1]).collect();
            let moved = shuffled(lanes, compressed(bits));
            let expected = together.iter().map(|&byte| 0x40 + byte);
            assert!(
                moved[..together.len()].iter().copied().eq(expected),
                "{bits}"
            );
            assert!(
                moved[together.len()..].iter().all(|&byte| byte == 0xee),
                "{bits}"
            );

            let back = shuffled(moved, expanded(bits | 0xff00));
            for (byte, back) in (0..).zip(back) {
                let expected = if together.contains(&byte) {
                    0x40 + byte
                } else {
                    0xee
                };
                assert_eq!(back, expected, "{bits}, byte {byte}");
            }
        }
    }
}

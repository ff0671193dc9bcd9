package main

import (
	"encoding/binary"
	"math/bits"
)

// Sparx64 is SPARX-64/128, the cipher of Randflake: it maps raw numbers to IDs one to one.
// Source: Dinu et al., "Design Strategies for ARX with Provable Bounds: SPARX and LAX",
// ASIACRYPT 2016.
type Sparx64 struct {
	// One subkey for each branch of each step, and one that is added at the end.
	subkeys [2*steps + 1][6]uint16
}

const steps = 8

// NewSparx64 expands a key.
func NewSparx64(secret [16]byte) *Sparx64 {
	var key [8]uint16
	for i := range key {
		key[i] = binary.BigEndian.Uint16(secret[2*i:])
	}
	sparx := new(Sparx64)
	for i := range sparx.subkeys {
		copy(sparx.subkeys[i][:], key[:6])
		arxBox(&key[0], &key[1])
		key[2] += key[0]
		key[3] += key[1]
		key[7] += uint16(i + 1)
		key = [8]uint16{key[6], key[7], key[0], key[1], key[2], key[3], key[4], key[5]}
	}
	return sparx
}

// Encrypt returns the ID of a raw number.
func (sparx *Sparx64) Encrypt(raw uint64) uint64 {
	a, b, c, d := words(raw)
	for step := 0; step < steps; step++ {
		rounds(&a, &b, &sparx.subkeys[2*step])
		rounds(&c, &d, &sparx.subkeys[2*step+1])
		t := bits.RotateLeft16(a^b, 8)
		a, b, c, d = c^a^t, d^b^t, a, b
	}
	last := &sparx.subkeys[2*steps]
	return number(a^last[0], b^last[1], c^last[2], d^last[3])
}

// Decrypt returns the raw number of an ID.
func (sparx *Sparx64) Decrypt(id uint64) uint64 {
	a, b, c, d := words(id)
	last := &sparx.subkeys[2*steps]
	a, b, c, d = a^last[0], b^last[1], c^last[2], d^last[3]
	for step := steps - 1; step >= 0; step-- {
		t := bits.RotateLeft16(c^d, 8)
		a, b, c, d = c, d, a^c^t, b^d^t
		roundsBack(&a, &b, &sparx.subkeys[2*step])
		roundsBack(&c, &d, &sparx.subkeys[2*step+1])
	}
	return number(a, b, c, d)
}

func rounds(x, y *uint16, keys *[6]uint16) {
	for i := 0; i < 6; i += 2 {
		*x ^= keys[i]
		*y ^= keys[i+1]
		arxBox(x, y)
	}
}

func roundsBack(x, y *uint16, keys *[6]uint16) {
	for i := 4; i >= 0; i -= 2 {
		*y = bits.RotateLeft16(*y^*x, -2)
		*x = bits.RotateLeft16(*x-*y, -9)
		*x ^= keys[i]
		*y ^= keys[i+1]
	}
}

// arxBox is the only non-linear part.
func arxBox(x, y *uint16) {
	*x = bits.RotateLeft16(*x, 9) + *y
	*y = bits.RotateLeft16(*y, 2) ^ *x
}

// words is the cipher's view of a number: its eight bytes from the lowest on, two to a word.
func words(of uint64) (a, b, c, d uint16) {
	of = bits.ReverseBytes64(of)
	return uint16(of >> 48), uint16(of >> 32), uint16(of >> 16), uint16(of)
}

func number(a, b, c, d uint16) uint64 {
	return bits.ReverseBytes64(uint64(a)<<48 | uint64(b)<<32 | uint64(c)<<16 | uint64(d))
}

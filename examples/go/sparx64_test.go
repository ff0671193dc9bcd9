package main

import (
	"encoding/csv"
	"encoding/hex"
	"os"
	"strconv"
	"testing"
)

// Answers of Randflake's reference implementation.
const answers = "../../tests/data/randflake.csv"

func TestTheAnswersAreThoseOfTheReference(t *testing.T) {
	file, err := os.Open(answers)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	columns := map[string]int{}
	for i, name := range rows[0] {
		columns[name] = i
	}
	if len(rows) != 65 {
		t.Fatalf("%d rows", len(rows))
	}
	for _, row := range rows[1:] {
		number := func(column string) uint64 {
			value, err := strconv.ParseUint(row[columns[column]], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return value
		}
		var secret [16]byte
		if _, err := hex.Decode(secret[:], []byte(row[columns["secret_hex"]])); err != nil {
			t.Fatal(err)
		}
		layout := Layout{EpochUnixMs: 1730000000000, TickMs: 1000, TimeBits: 30, NodeBits: 17, SequenceBits: 17}
		tick, _ := layout.TickAt(int64(number("timestamp_unix_s") * 1000))
		raw := layout.Pack(tick, number("node"), number("sequence"))
		if raw != number("raw_u64") {
			t.Fatalf("the raw number is %d, in row %v", raw, row)
		}
		sparx := NewSparx64(secret)
		if id := sparx.Encrypt(raw); id != number("id_u64") {
			t.Fatalf("the ID is %d, in row %v", id, row)
		}
		if back := sparx.Decrypt(number("id_u64")); back != raw {
			t.Fatalf("decrypted to %d, in row %v", back, row)
		}
	}
}

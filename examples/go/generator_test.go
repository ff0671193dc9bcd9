package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// A layout with 4 IDs a node and tick.
var small = Layout{EpochUnixMs: 1000, TickMs: 1000, TimeBits: 30, NodeBits: 8, SequenceBits: 2}

func answer(text string, nodes, ticks [2]uint64, renewAfterS uint64) *Leases {
	lease := Lease{Text: text, RenewAfterS: renewAfterS}
	lease.Nodes.Start, lease.Nodes.End = nodes[0], nodes[1]
	lease.Ticks.From, lease.Ticks.Until = ticks[0], ticks[1]
	return &Leases{Namespace: "orders", Layout: small, IDBits: 64, Leases: []Lease{lease}}
}

func at(tick *uint64) func() time.Time {
	return func() time.Time { return time.UnixMilli(int64(small.EpochUnixMs + *tick*small.TickMs)) }
}

// drain takes all that there is, and fails if something is outside or comes twice.
func drain(t *testing.T, g *Generator, seen map[uint64]bool, nodes, ticks [2]uint64) int {
	t.Helper()
	for count := 0; ; count++ {
		id, err := g.Next()
		if err != nil {
			return count
		}
		tick, node := id>>10, id>>2&0xff
		if seen[id] || node < nodes[0] || node >= nodes[1] || tick < ticks[0] || tick >= ticks[1] {
			t.Fatalf("tick %d of node %d is outside, or comes twice", tick, node)
		}
		seen[id] = true
	}
}

func TestALeaseIsUsedUpAndNotExceeded(t *testing.T) {
	g := NewGenerator(nil, "orders", "", time.Second, nil)
	clock := uint64(10)
	g.now = at(&clock)
	if _, err := g.Next(); err != ErrNoLease {
		t.Fatal(err)
	}
	seen := map[uint64]bool{}
	// It begins ahead of the clock.
	if err := g.begin(answer("a", [2]uint64{4, 6}, [2]uint64{12, 15}, 1)); err != nil {
		t.Fatal(err)
	}
	if count := drain(t, g, seen, [2]uint64{4, 6}, [2]uint64{12, 15}); count != 3*2*4 {
		t.Fatal(count)
	}
	if err := g.extend(answer("b", [2]uint64{4, 6}, [2]uint64{12, 17}, 1)); err != nil {
		t.Fatal(err)
	}
	// The clock is back, and then far ahead.
	clock = 0
	if _, err := g.Next(); err != nil {
		t.Fatal(err)
	}
	clock = 16
	if count := drain(t, g, seen, [2]uint64{4, 6}, [2]uint64{12, 17}); count != 2*4 {
		t.Fatal(count)
	}
	clock = 100
	if count := drain(t, g, seen, [2]uint64{4, 6}, [2]uint64{12, 17}); count != 0 {
		t.Fatal(count)
	}
	if err := g.extend(answer("c", [2]uint64{6, 8}, [2]uint64{12, 200}, 1)); err == nil {
		t.Fatal("another lease was taken for the same")
	}
}

func TestAClockThatIsWrongForAMomentCostsThatMoment(t *testing.T) {
	for name, wrong := range map[string]time.Time{
		"a day ahead":      time.UnixMilli(int64(small.EpochUnixMs)).Add(24 * time.Hour),
		"the largest":      time.UnixMilli(1<<63 - 1),
		"before the epoch": time.UnixMilli(int64(small.EpochUnixMs) - 1),
		"before 1970":      time.UnixMilli(-1),
		"the smallest":     time.UnixMilli(-1 << 63),
	} {
		g := NewGenerator(nil, "orders", "", time.Second, nil)
		clock := uint64(12)
		right := at(&clock)
		g.now = right
		if err := g.begin(answer("a", [2]uint64{4, 6}, [2]uint64{12, 132}, 1)); err != nil {
			t.Fatal(err)
		}
		seen := map[uint64]bool{}
		take := func(tick uint64) {
			t.Helper()
			id, err := g.Next()
			if err != nil || id>>10 != tick || seen[id] {
				t.Fatalf("%s: tick %d in place of %d, or again: %v", name, id>>10, tick, err)
			}
			seen[id] = true
		}
		take(12)
		g.now = func() time.Time { return wrong }
		if id, err := g.Next(); err == nil {
			// Of a clock that is behind, the tick stays.
			if id>>10 != 12 || seen[id] {
				t.Fatalf("%s: tick %d", name, id>>10)
			}
			seen[id] = true
		} else if wrong.UnixMilli() < 0 {
			t.Fatalf("%s: %v", name, err)
		}
		// It is right again, and goes on as if nothing had been, on a lease that is renewed.
		g.now = right
		take(12)
		for clock = 13; clock < 2000; clock += 60 {
			if err := g.extend(answer("a", [2]uint64{4, 6}, [2]uint64{12, clock + 120}, 1)); err != nil {
				t.Fatal(err)
			}
			take(clock)
		}
	}
}

func TestARateIsWhatItSays(t *testing.T) {
	for _, rate := range []int{1, 10, 99, 100, 101, 10000} {
		pace, seconds, count := pace{rate: rate}, 7, 0
		for i := 0; i < seconds*portions; i++ {
			next := pace.next()
			if next > rate/portions+1 {
				t.Fatalf("%d at once, of %d a second", next, rate)
			}
			count += next
		}
		if count != seconds*rate {
			t.Fatalf("%d in %d s, of %d a second", count, seconds, rate)
		}
	}
}

func TestALeaseThatIsLostIsReplaced(t *testing.T) {
	asked := make(chan map[string]any, 16)
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		body := map[string]any{}
		_ = json.NewDecoder(in.Body).Decode(&body)
		body["path"], body["token"] = in.URL.Path, in.Header.Get("Authorization")
		asked <- body
		switch {
		case in.URL.Path == "/v1/leases/renew":
			out.WriteHeader(http.StatusConflict)
			_ = json.NewEncoder(out).Encode(&Problem{Type: "urn:ringflake:problem:lease-lost"})
		case in.URL.Path == "/v1/leases/release":
			_, _ = out.Write([]byte(`{"namespace":"orders","released":[]}`))
		case len(body["had"].([]any)) == 0:
			_ = json.NewEncoder(out).Encode(answer("a", [2]uint64{4, 6}, [2]uint64{12, 15}, 0))
		default:
			_ = json.NewEncoder(out).Encode(answer("b", [2]uint64{6, 8}, [2]uint64{12, 15}, 60))
		}
	}))
	defer server.Close()
	client := &Client{URL: server.URL, Token: "secret", HTTP: server.Client()}
	g := NewGenerator(client, "orders", "me", 2*time.Second, nil)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { _ = g.Run(ctx); close(ended) }()

	expect := func(path, member, value string) {
		t.Helper()
		body := <-asked
		text, _ := json.Marshal(body[member])
		if body["path"] != path || string(text) != value || body["token"] != "Bearer secret" {
			t.Fatalf("asked %v, and not %s with %s=%s", body, path, member, value)
		}
	}
	expect("/v1/leases", "had", `[]`)
	expect("/v1/leases/renew", "lease", `"a"`)
	expect("/v1/leases", "had", `["a"]`)
	for g.current() == nil || g.current().Text != "b" {
		time.Sleep(time.Millisecond)
	}
	cancel()
	<-ended
	expect("/v1/leases/release", "lease", `"b"`)
	if _, err := g.Next(); err != ErrNoLease {
		t.Fatal("it issues after the release")
	}
}

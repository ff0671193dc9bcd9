package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// Client asks a server for leases.
type Client struct {
	URL   string
	Token string
	// HTTP must give up after some time.
	HTTP *http.Client
}

// Layout says what a raw number consists of, from the high bits to the low: tick, node,
// sequence.
type Layout struct {
	EpochUnixMs  uint64 `json:"epoch_unix_ms"`
	TickMs       uint64 `json:"tick_ms"`
	TimeBits     uint   `json:"time_bits"`
	NodeBits     uint   `json:"node_bits"`
	SequenceBits uint   `json:"sequence_bits"`
}

// TickAt returns the tick of a time, if it is not before the first.
func (layout Layout) TickAt(unixMs int64) (uint64, bool) {
	// A clock may stand before 1970 as well.
	if unixMs < 0 || uint64(unixMs) < layout.EpochUnixMs {
		return 0, false
	}
	return (uint64(unixMs) - layout.EpochUnixMs) / layout.TickMs, true
}

// Pack puts a raw number together.
func (layout Layout) Pack(tick, node, sequence uint64) uint64 {
	return (tick<<layout.NodeBits|node)<<layout.SequenceBits | sequence
}

// Lease is a rectangle: nodes and ticks that its holder alone may make IDs of.
type Lease struct {
	Text  string `json:"lease"`
	Nodes struct {
		Start uint64 `json:"start"`
		End   uint64 `json:"end"`
	} `json:"nodes"`
	Ticks struct {
		From  uint64 `json:"from"`
		Until uint64 `json:"until"`
	} `json:"ticks"`
	RenewAfterS uint64 `json:"renew_after_s"`
}

// Leases is an answer.
type Leases struct {
	Namespace string  `json:"namespace"`
	Layout    Layout  `json:"layout"`
	IDBits    int     `json:"id_bits"`
	Encrypted bool    `json:"encrypted"`
	Leases    []Lease `json:"leases"`
}

// Problem is an error of the server.
type Problem struct {
	Type         string `json:"type"`
	Status       int    `json:"status"`
	Detail       string `json:"detail"`
	RetryAfterMs uint64 `json:"retry_after_ms"`
}

func (problem *Problem) Error() string {
	return fmt.Sprintf("%d %s: %s", problem.Status, problem.Type, problem.Detail)
}

// IsLost says whether the lease is not ours any more.
func (problem *Problem) IsLost() bool {
	return problem.Status == http.StatusConflict
}

// RetryAfter says how long to wait.
func (problem *Problem) RetryAfter() time.Duration {
	return time.Duration(problem.RetryAfterMs) * time.Millisecond
}

// Acquire asks for a lease of this namespace. Had are texts of leases that were lost.
func (client *Client) Acquire(ctx context.Context, namespace, holder string, duration time.Duration, had []string) (*Leases, error) {
	if had == nil {
		had = []string{}
	}
	return client.leases(ctx, "/v1/leases", map[string]any{
		"namespace":  namespace,
		"holder":     holder,
		"duration_s": seconds(duration),
		"had":        had,
	})
}

// Renew lets a lease end later. Its answer has the text for the next time.
func (client *Client) Renew(ctx context.Context, text string, duration time.Duration) (*Leases, error) {
	return client.leases(ctx, "/v1/leases/renew", map[string]any{
		"lease":      text,
		"duration_s": seconds(duration),
	})
}

// Release ends a lease, of which nothing more is issued.
func (client *Client) Release(ctx context.Context, text string) error {
	return client.post(ctx, "/v1/leases/release", map[string]any{"lease": text}, new(struct{}))
}

func seconds(duration time.Duration) int64 {
	return int64(duration / time.Second)
}

func (client *Client) leases(ctx context.Context, path string, body any) (*Leases, error) {
	leases := new(Leases)
	if err := client.post(ctx, path, body, leases); err != nil {
		return nil, err
	}
	if len(leases.Leases) == 0 {
		return nil, fmt.Errorf("the answer has no lease")
	}
	return leases, nil
}

func (client *Client) post(ctx context.Context, path string, body, answer any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, client.URL+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	// So that the library never sends it a second time by itself.
	request.GetBody = nil
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+client.Token)
	response, err := client.HTTP.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err = io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		return err
	}
	if response.StatusCode == http.StatusOK {
		return json.Unmarshal(text, answer)
	}
	problem := &Problem{Status: response.StatusCode, Detail: string(text)}
	// A proxy may have answered with something else.
	if json.Unmarshal(text, problem) != nil {
		after, _ := strconv.ParseUint(response.Header.Get("Retry-After"), 10, 32)
		problem.RetryAfterMs = after * 1000
	}
	problem.Status = response.StatusCode
	return problem
}

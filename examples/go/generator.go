package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"sync"
	"time"
)

// ErrNoLease says that there is none at present: try again a little later.
var ErrNoLease = errors.New("there is no lease that lasts at present")

// Generator makes IDs from one lease at a time. Rules are those of README.md.
type Generator struct {
	client    *Client
	namespace string
	holder    string
	duration  time.Duration
	// Nil where IDs are not encrypted.
	secret *Sparx64
	now    func() time.Time

	mu     sync.Mutex
	layout Layout
	// Nil while there is none.
	lease *Lease
	// What the next ID is made of.
	tick, node, sequence uint64
}

// NewGenerator makes one without a lease: Run gets it.
func NewGenerator(client *Client, namespace, holder string, duration time.Duration, secret *Sparx64) *Generator {
	return &Generator{
		client:    client,
		namespace: namespace,
		holder:    holder,
		duration:  duration,
		secret:    secret,
		now:       time.Now,
	}
}

// Next makes an ID.
func (g *Generator) Next() (uint64, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	lease := g.lease
	if lease == nil {
		return 0, ErrNoLease
	}
	// Rules 1 and 2: the clock moves the tick forward, and nothing moves it back. So it moves
	// to ticks of the lease alone: a clock that is wrong for a moment costs that moment.
	if tick, ok := g.layout.TickAt(g.now().UnixMilli()); ok && tick > g.tick {
		if tick >= lease.Ticks.Until {
			return 0, ErrNoLease
		}
		g.tick, g.node, g.sequence = tick, lease.Nodes.Start, 0
	}
	// Used up, ahead of the clock.
	if g.tick >= lease.Ticks.Until {
		return 0, ErrNoLease
	}
	raw := g.layout.Pack(g.tick, g.node, g.sequence)
	g.sequence++
	if g.sequence == 1<<g.layout.SequenceBits {
		g.sequence = 0
		g.node++
	}
	if g.node == lease.Nodes.End {
		// More IDs than a tick has: the next ticks are ours as well.
		g.node = lease.Nodes.Start
		g.tick++
	}
	if g.secret == nil {
		return raw, nil
	}
	return g.secret.Encrypt(raw), nil
}

// Run keeps a lease until ctx ends, and then releases it. It fails where the namespace needs
// another kind of generator.
func (g *Generator) Run(ctx context.Context) error {
	var had []string
	wait := time.Duration(0)
	for {
		select {
		case <-ctx.Done():
			g.release(g.take())
			return nil
		case <-time.After(wait):
		}
		lease := g.current()
		var err error
		if lease == nil {
			var leases *Leases
			leases, err = g.client.Acquire(ctx, g.namespace, g.holder, g.duration, had)
			if err == nil {
				if err := g.begin(leases); err != nil {
					g.release(&leases.Leases[0])
					return err
				}
			}
		} else {
			var leases *Leases
			leases, err = g.client.Renew(ctx, lease.Text, g.duration)
			if err == nil {
				err = g.extend(leases)
			}
		}
		var problem *Problem
		isProblem := errors.As(err, &problem)
		switch {
		case err == nil:
			wait = time.Duration(g.current().RenewAfterS) * time.Second
			if wait == 0 {
				wait = time.Second / 2
			}
		case lease != nil && isProblem && problem.IsLost():
			// Rule 4: nothing more is issued from it.
			log.Print(err)
			g.take()
			had = []string{lease.Text}
			wait = 0
		default:
			// Rule 5: what is known of the lease stays ours.
			log.Print(err)
			wait = time.Second
			if isProblem && problem.Status == http.StatusUnprocessableEntity {
				had = nil
			}
			if isProblem && problem.RetryAfter() > 0 {
				wait = problem.RetryAfter()
			}
		}
	}
}

func (g *Generator) current() *Lease {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.lease
}

// begin issues from another lease than before.
func (g *Generator) begin(leases *Leases) error {
	if leases.Encrypted != (g.secret != nil) || (leases.Encrypted && leases.IDBits != 64) {
		return fmt.Errorf("the namespace %s has encrypted=%v and id_bits=%d, which is not what this was given a secret for",
			leases.Namespace, leases.Encrypted, leases.IDBits)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.layout = leases.Layout
	g.lease = &leases.Leases[0]
	g.tick, g.node, g.sequence = g.lease.Ticks.From, g.lease.Nodes.Start, 0
	return nil
}

// extend goes on with the same lease.
func (g *Generator) extend(leases *Leases) error {
	next := &leases.Leases[0]
	g.mu.Lock()
	defer g.mu.Unlock()
	if next.Nodes != g.lease.Nodes || next.Ticks.Until < g.lease.Ticks.Until {
		return fmt.Errorf("the answer is about another lease: %+v", *next)
	}
	g.lease = next
	return nil
}

// take ends the use of the lease.
func (g *Generator) take() *Lease {
	g.mu.Lock()
	defer g.mu.Unlock()
	lease := g.lease
	g.lease = nil
	return lease
}

// release is rule 7: nothing more is issued from this lease.
func (g *Generator) release(lease *Lease) {
	if lease == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := g.client.Release(ctx, lease.Text); err != nil {
		log.Print(err)
	}
}

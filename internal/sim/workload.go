package sim

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// WorkloadOptions describe multi-turn conversations that share system prompts.
// Lengths are in words, which are one token each in the simulator's tokenizer.
type WorkloadOptions struct {
	Seed          uint64
	Conversations int
	Turns         int // of each conversation
	Systems       int // distinct system prompts
	SystemWords   int
	UserWords     int           // per turn, ± 50 %
	Output        int           // tokens generated per turn
	Gap           time.Duration // mean time between the starts of two conversations
	Think         time.Duration // mean time between an answer and the next turn
	Model         string
}

// Conversation is the fixed part of one: what the user says and when it starts.
// The answers come from the engines.
type Conversation struct {
	ID     int
	Start  time.Duration // after the start of the run
	System string
	Turns  []string
	Think  []time.Duration // before each turn
	Output int
	Model  string
}

// Draw makes them: equal options give equal conversations.
func (o WorkloadOptions) Draw() []Conversation {
	rng := rand.New(rand.NewPCG(o.Seed, 0x9e3779b97f4a7c15))
	systems := make([]string, max(o.Systems, 1))
	for i := range systems {
		systems[i] = fmt.Sprintf("You are assistant number %d.", i) + words(rng, o.SystemWords)
	}
	out := make([]Conversation, o.Conversations)
	var at time.Duration
	for i := range out {
		c := Conversation{ID: i, Start: at, System: systems[rng.IntN(len(systems))], Output: o.Output, Model: o.Model}
		for range o.Turns {
			c.Turns = append(c.Turns, fmt.Sprintf("Question %d.", i)+words(rng, o.UserWords/2+rng.IntN(o.UserWords+1)))
			c.Think = append(c.Think, exponential(rng, o.Think))
		}
		c.Think[0] = 0
		at += exponential(rng, o.Gap)
		out[i] = c
	}
	return out
}

func exponential(rng *rand.Rand, mean time.Duration) time.Duration {
	return time.Duration(rng.ExpFloat64() * float64(mean))
}

func words(rng *rand.Rand, n int) string {
	var b strings.Builder
	for range n {
		b.WriteString(" w")
		b.WriteString(fmt.Sprint(rng.IntN(50_000)))
	}
	return b.String()
}

package testdata

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Capture is what one engine published and answered; testdata/engines/README.md
// describes the files.
type Capture struct {
	Name     string // folder below engines: "vllm-0.32.0/llama"
	Dir      string
	Own      bool // one of the project's, from the engine's start and with stated counts
	SGLang   bool // else vLLM
	Ranks    int
	Blocks   int // KV blocks of each rank's engine
	Messages []Message
	Requests []Request
}

// Message is one KV-event message, in the order a subscriber of all ranks had it.
type Message struct {
	At      float64 `json:"t"` // received, Unix seconds
	Topic   string  `json:"topic"`
	Seq     uint64  `json:"seq"`
	Rank    int     `json:"rank_socket"`
	Hex     string  `json:"payload_hex"`
	Payload []byte  `json:"-"`
}

// Request is one call to the engine and what that reported.
type Request struct {
	ID      json.RawMessage   `json:"id"`
	At      float64           `json:"t"` // sent, Unix seconds
	End     float64           `json:"t_end"`
	Headers map[string]string `json:"headers"`
	Body    struct {
		Model    string          `json:"model"`
		Salt     string          `json:"cache_salt"`
		ExtraKey json.RawMessage `json:"extra_key"`
	} `json:"body"`
	Status   int             `json:"status"`
	TokenIDs json.RawMessage `json:"token_ids"` // a list of lists for several prompts
	Cached   int             `json:"cached_tokens"`
	Before   int             `json:"batches_before"` // messages published until then
	Group    json.RawMessage `json:"group"`
	Note     json.RawMessage `json:"note"`
	Render   json.RawMessage `json:"render"` // the render endpoint's reply to a request with images

	Tokens []uint32 `json:"-"` // of comparable requests
}

// Media is an image of a request, as the engine's render endpoint names it.
type Media struct {
	Name           string
	Offset, Length int // tokens
}

// Media are the images of a request, in its order.
func (r *Request) Media(tb testing.TB) (list []Media) {
	tb.Helper()
	if len(r.Render) == 0 {
		return nil
	}
	var reply struct {
		Features struct {
			Names  struct{ Image []string } `json:"mm_hashes"`
			Places struct{ Image []Media }  `json:"mm_placeholders"`
		}
	}
	if err := json.Unmarshal(r.Render, &reply); err != nil {
		tb.Fatal(err)
	}
	for i, m := range reply.Features.Places.Image {
		m.Name = reply.Features.Names.Image[i]
		list = append(list, m)
	}
	return list
}

// Comparable tells whether events alone predict what the engine found cached.
func (r *Request) Comparable() bool {
	return r.Status == 200 && len(r.TokenIDs) > 1 && r.TokenIDs[1] != '[' && // one prompt
		string(r.TokenIDs) != "null" && len(r.Note) == 0 && len(r.Group) == 0
}

// Prompts are the ids of a request's prompts as an engine used them, from a list of ids
// or, of several prompts, a list of lists; nil when it named none or told an error.
func Prompts(tb testing.TB, ids json.RawMessage) (list [][]uint32) {
	tb.Helper()
	if len(ids) == 0 || string(ids) == "null" || ids[0] == '{' {
		return nil
	}
	var one []uint32
	if json.Unmarshal(ids, &one) == nil {
		return [][]uint32{one}
	}
	if err := json.Unmarshal(ids, &list); err != nil {
		tb.Fatalf("neither ids nor lists of ids: %v", err)
	}
	return list
}

// Usable is how many of the tokens that a match found cached an engine uses:
// whole blocks of size tokens, and never the prompt's last token, which it always
// computes.
func (r *Request) Usable(matched, size int) int {
	if size == 0 || len(r.Body.ExtraKey) > 0 { // SGLang's events do not tell that key
		return 0
	}
	return min(matched/size, (len(r.Tokens)-1)/size) * size
}

// Rank is the rank that served the request, if the request named it or the
// engine has just one.
func (c *Capture) Rank(r *Request) (rank int, ok bool) {
	if c.Ranks == 1 {
		return 0, true
	}
	for k, v := range r.Headers {
		if strings.EqualFold(k, "X-data-parallel-rank") {
			n, err := strconv.Atoi(v)
			return n, err == nil
		}
	}
	return 0, false
}

// Captures reads every capture that has both messages and requests. Each folder
// given must have one.
func Captures(tb testing.TB) (all []*Capture) {
	tb.Helper()
	for i, root := range Dirs(tb, "engines") {
		had := len(all)
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.Name() != "frames.jsonl" {
				return err
			}
			dir := filepath.Dir(path)
			if _, err := os.Stat(filepath.Join(dir, "requests.jsonl")); err != nil {
				return nil
			}
			name, _ := filepath.Rel(root, dir)
			all = append(all, readCapture(tb, dir, filepath.ToSlash(name), i == 0))
			return nil
		})
		if err != nil {
			tb.Fatal(err)
		}
		if len(all) == had {
			tb.Fatalf("no capture under %s", root)
		}
	}
	return all
}

// Messages reads a frames.jsonl, whether or not the requests that caused it are
// known.
func Messages(tb testing.TB, path string) (all []Message) {
	tb.Helper()
	readLines(tb, path, func(m *Message) (err error) {
		m.Payload, err = hex.DecodeString(m.Hex)
		all = append(all, *m)
		return err
	})
	return all
}

func readCapture(tb testing.TB, dir, name string, own bool) *Capture {
	tb.Helper()
	c := &Capture{Name: name, Dir: dir, Own: own, Ranks: 1}
	c.Messages = Messages(tb, filepath.Join(dir, "frames.jsonl"))
	for i := range c.Messages {
		c.Ranks = max(c.Ranks, c.Messages[i].Rank+1)
	}
	readLines(tb, filepath.Join(dir, "requests.jsonl"), func(r *Request) (err error) {
		if r.Comparable() {
			err = json.Unmarshal(r.TokenIDs, &r.Tokens)
		}
		c.Requests = append(c.Requests, *r)
		return err
	})
	about, err := os.ReadFile(filepath.Join(dir, "engine.json"))
	if err != nil {
		tb.Fatal(err)
	}
	c.SGLang = bytes.Contains(about, []byte("/server_info"))
	if c.Blocks, err = blocksOf(about); err != nil && own {
		tb.Fatalf("%s: %v", c.Name, err)
	}
	return c
}

// blocksOf reads the size of the engine's KV pool from engine.json: vLLM was told
// it on its command line, SGLang reports it.
func blocksOf(about []byte) (int, error) {
	var e struct {
		Args []string `json:"args"`
		Info struct {
			Body string `json:"body"`
		} `json:"/server_info"`
	}
	if err := json.Unmarshal(about, &e); err != nil {
		return 0, err
	}
	for i, a := range e.Args {
		if a == "--num-gpu-blocks-override" && i+1 < len(e.Args) {
			return strconv.Atoi(e.Args[i+1])
		}
	}
	var info struct {
		Tokens int `json:"max_total_num_tokens"`
		Page   int `json:"page_size"`
	}
	if err := json.Unmarshal([]byte(e.Info.Body), &info); err != nil {
		return 0, err
	}
	if info.Page == 0 {
		return 0, errors.New("no size of the KV pool")
	}
	return info.Tokens / info.Page, nil
}

// readLines decodes each line of a file into a T.
func readLines[T any](tb testing.TB, path string, each func(*T) error) {
	tb.Helper()
	f, err := os.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	s.Buffer(nil, 64<<20)
	for n := 1; s.Scan(); n++ {
		if len(s.Bytes()) == 0 {
			continue
		}
		var v T
		err := json.Unmarshal(s.Bytes(), &v)
		if err == nil {
			err = each(&v)
		}
		if err != nil {
			tb.Fatalf("%s:%d: %v", path, n, err)
		}
	}
	if err := s.Err(); err != nil {
		tb.Fatalf("%s: %v", path, err)
	}
}

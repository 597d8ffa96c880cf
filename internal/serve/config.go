package serve

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/goccy/go-yaml/token"

	"github.com/eppctl/eppctl/internal/core/pick"
	"github.com/eppctl/eppctl/internal/core/pod"
)

// Config is eppctl.yaml, checked and completed by defaults. It is immutable: an
// edit of the file makes a new Config (see Watch).
type Config struct {
	Path   string // file it came from, "" = defaults only
	Listen Listen
	Pods   []pod.Spec // in file order; names and addresses are unique
	Models Models
	// Weights are the constants of the decision, those of single models included.
	Weights *pick.Policy
	Limits  Limits
	Scrape  Scrape
	Envoy   Envoy
	// Decisions says where what was decided is recorded.
	Decisions Decisions
	// StrictModels refuses a model that neither models nor a pod names with 404
	// instead of routing it by load.
	StrictModels bool
	// Drain is how long open streams may go on after the first SIGTERM.
	Drain time.Duration
	// LogLevel is one of LogLevels.
	LogLevel string

	overrides []Override
	text      []byte

	// What Values shows: the layout as it was read, where its values stood, and what a
	// flag or variable set.
	file   file
	places map[string]*token.Position
	blame  map[string]string
}

// Listen holds the addresses to listen at; "" turns a listener off.
type Listen struct {
	ExtProc string `yaml:"ext_proc"` // Envoy's ext_proc gRPC, never off
	Health  string `yaml:"health"`   // gRPC health
	Admin   string `yaml:"admin"`    // admin API: loopback host:port or unix:/path
	Metrics string `yaml:"metrics"`  // Prometheus page
}

// Limits bound what comes from outside.
type Limits struct {
	RequestBytes    Bytes         `yaml:"request_bytes"`    // a body above it is refused with 413
	PickDeadline    time.Duration `yaml:"pick_deadline"`    // past it a request is routed without its prefix
	RenderTimeout   time.Duration `yaml:"render_timeout"`   // of one render call, inside the pick deadline
	TokenizeTimeout time.Duration `yaml:"tokenize_timeout"` // of one tokenizer, the native one too, inside the pick deadline
	Blocks          int           `yaml:"blocks"`           // blocks the index keeps in all
	IndexBytes      Bytes         `yaml:"index_bytes"`      // the same in memory, 0 = only blocks counts
	ScrapeBytes     Bytes         `yaml:"scrape_bytes"`     // one metrics page, decoded
	FrameBytes      Bytes         `yaml:"frame_bytes"`      // one message of KV events
	RecentCards     int           `yaml:"recent_cards"`     // decisions kept for explain --request-id
}

// Scrape says how often the pods' metrics pages are read.
type Scrape struct {
	Interval time.Duration `yaml:"interval"`
	Timeout  time.Duration `yaml:"timeout"`
	// Devices are the URLs of the nodes' DCGM exporters, joined to pods by
	// pods[].device.
	Devices []string `yaml:"device_exporters"`
}

// Envoy is what serve keeps up to date for Envoy.
type Envoy struct {
	// EndpointsFile is the EDS file that serve replaces by rename whenever the
	// fleet changes; "" = none.
	EndpointsFile string `yaml:"endpoints_file"`
	// Cluster names the cluster in that file; it must equal the bootstrap's.
	Cluster string `yaml:"cluster"`
}

// Decisions is the recording of decisions, for eppctl replay.
type Decisions struct {
	File       string `yaml:"file"`        // "" = none
	RotateSize Bytes  `yaml:"rotate_size"` // a file of this size is followed by another
	Keep       int    `yaml:"keep"`        // files in all
}

// file is the layout of eppctl.yaml. Where the file and Config differ, Config
// has the form the rest of the program wants.
type file struct {
	Listen       Listen        `yaml:"listen"`
	Pods         []podEntry    `yaml:"pods"`
	Models       []Model       `yaml:"models"`
	Weights      weights       `yaml:"weights"`
	Limits       Limits        `yaml:"limits"`
	Scrape       Scrape        `yaml:"scrape"`
	Envoy        Envoy         `yaml:"envoy"`
	Decisions    Decisions     `yaml:"decisions"`
	StrictModels bool          `yaml:"strict_models"`
	Drain        time.Duration `yaml:"drain_timeout"`
	LogLevel     string        `yaml:"log_level"`
}

// maxConfigBytes caps the file: a thousand pods with every key written out
// come to well under 1 MiB.
const maxConfigBytes = 4 << 20

func defaults() file {
	return file{
		Weights: weights{Policy: *pick.DefaultPolicy()},
		Listen:  Listen{ExtProc: ":9002", Health: ":9003", Admin: "127.0.0.1:9004", Metrics: ":9090"},
		Limits: Limits{
			// Envoy buffers as much in the printed bootstrap.
			RequestBytes: 32 << 20,
			// Below the 5 s message_timeout of the printed bootstrap; nothing in
			// Envoy bounds a pick in full duplex.
			PickDeadline: 500 * time.Millisecond,
			// vLLM's render server took 7 ms for a chat of 500 tokens, and 5 to 7 ms
			// at p95 for prompts of 100,000 in another picker's test. Behind a hung
			// one there has to be time for the next provider.
			RenderTimeout:   150 * time.Millisecond,
			TokenizeTimeout: 300 * time.Millisecond,
			// About 600 MB at the measured 59 bytes per block: more than the pools
			// of 64 pods with 150,000 blocks each hold in all.
			Blocks:      10_000_000,
			ScrapeBytes: 4 << 20,
			FrameBytes:  16 << 20,
			RecentCards: 4096,
		},
		Scrape: Scrape{Interval: 250 * time.Millisecond, Timeout: time.Second},
		Envoy:  Envoy{Cluster: "pool"},
		// A prompt of 12,000 tokens, the mean of the Mooncake conversation trace,
		// takes 8 KB: a quarter of a GiB is some 30,000 requests.
		Decisions: Decisions{RotateSize: 256 << 20, Keep: 4},
		Drain:     25 * time.Second,
		LogLevel:  "info",
	}
}

// Override changes a value after the file is read: a flag or an environment
// variable wins over the file.
type Override struct {
	Key  string // of what it changes, "listen.admin"
	From string // what a message blames, "--admin-addr" or "EPPCTL_ADMIN_ADDR"
	Set  func(*Config)
}

// LoadConfig reads and checks the file at path; "" gives the defaults. Errors
// are of type *ConfigError and list every problem found. A file without a pod is
// one: a static list is never meant to be empty, so that such a file is a slip
// of an editor or of whatever writes it, and must not empty a running fleet.
func LoadConfig(path string, with ...Override) (*Config, error) {
	if path == "" {
		return parseConfig("", nil, with)
	}
	text, err := readConfig(path)
	if err != nil {
		return nil, &ConfigError{Problems: []Problem{{File: path, Found: err.Error()}}}
	}
	return parseConfig(path, text, with)
}

func parseConfig(path string, text []byte, with []Override) (*Config, error) {
	f := defaults()
	d := newDecoder(path)
	d.decode(text, &f)
	c := &Config{
		Path: path, Listen: f.Listen, Limits: f.Limits, Scrape: f.Scrape, Envoy: f.Envoy, Decisions: f.Decisions,
		StrictModels: f.StrictModels, Drain: f.Drain, LogLevel: f.LogLevel, overrides: with, text: text,
	}
	c.Models = d.models(f.Models)
	c.Pods = d.pods(f.Pods, c.Models)
	c.Weights = d.policy(&f.Weights, c.Models)
	for _, o := range with {
		o.Set(c)
		d.blame[o.Key] = o.From
	}
	c.file, c.places, c.blame = f, d.places, d.blame
	d.check(c)
	return c, d.err()
}

// readConfig reads a file of text. A pipe or a device would keep it waiting for
// somebody who writes: only opening it without blocking tells what it is.
func readConfig(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		var pe *os.PathError
		if errors.As(err, &pe) {
			err = pe.Err // the path stands in the problem already
		}
		return nil, err
	}
	defer f.Close()
	switch st, err := f.Stat(); {
	case err != nil:
		return nil, err
	case st.IsDir():
		return nil, errors.New("is a directory")
	case !st.Mode().IsRegular():
		return nil, errors.New("is not a regular file")
	}
	text, err := io.ReadAll(io.LimitReader(f, maxConfigBytes+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxConfigBytes {
		return nil, fmt.Errorf("larger than %v", Bytes(maxConfigBytes))
	}
	return text, nil
}

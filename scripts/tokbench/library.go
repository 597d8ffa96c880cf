package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
)

// library is one that is timed.
type library string

const (
	own       library = "native"
	hf        library = "hf"
	fastokens library = "fastokens"
	prototype library = "prototype"
)

// bench is what is timed, on what.
type bench struct {
	libraries []library
	data      string // folder of models and texts
	program   string // of prototype
}

// round times one vocabulary once. Every other round goes through the libraries
// backwards, so that none is always behind the same one.
func (b bench) round(name string, round int, got results) error {
	order := slices.Clone(b.libraries)
	if round%2 == 0 {
		slices.Reverse(order)
	}
	for _, lib := range order {
		if lib == prototype && sentencePiece[name] {
			continue // it has byte-level vocabularies only
		}
		fmt.Fprintf(os.Stderr, "%s, round %d: %s\n", name, round, lib)
		list, err := b.measure(lib, name, round)
		if err != nil {
			return fmt.Errorf("%s with %s: %w", lib, name, err)
		}
		got.add(name, lib, list)
	}
	if err := got.compare(name); err != nil {
		return fmt.Errorf("round %d: %w", round, err)
	}
	return nil
}

// measure runs the library's child process, pinned to the last core where taskset is
// there to do it.
func (b bench) measure(l library, name string, round int) ([]sample, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	file, err := tokenizerFile(name, b.data)
	if err != nil {
		return nil, err
	}
	corpus, turn := filepath.Join(b.data, "corpus"), strconv.Itoa(round)
	args := []string{"python3", "scripts/tokbench/wheel.py", string(l), file, corpus, turn}
	switch l {
	case own:
		args = []string{self, "measure", file, corpus, turn}
	case prototype:
		args = []string{b.program, "bench", b.data, name, string(own), turn}
	}
	if _, err := exec.LookPath("taskset"); err == nil {
		args = append([]string{"taskset", "-c", strconv.Itoa(runtime.NumCPU() - 1)}, args...)
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "RAYON_NUM_THREADS=1", "TOKENIZERS_PARALLELISM=false",
		"CLASSES=testdata/tokenizer/hf_regex_classes.json.gz") // which a prototype may want
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	return readSamples(out)
}

// readSamples reads one sample a line. A prototype may call the value by its unit.
func readSamples(out []byte) (list []sample, err error) {
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		var s struct {
			sample
			Rate float64 `json:"mbs"`
			Time float64 `json:"ms"`
		}
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			return nil, fmt.Errorf("%s: %w", lines.Text(), err)
		}
		s.Value += s.Rate + s.Time
		list = append(list, s.sample)
	}
	return list, nil
}

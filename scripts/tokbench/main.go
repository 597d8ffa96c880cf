// Tokbench times the native tokenizer beside Hugging Face tokenizers and fastokens,
// one process each in turn on one core, and writes out/bench-tokenizer.json. What is
// compared is processor time in one run; the ids are compared too.
//
//	tokbench [-rounds 7] [-vocabularies qwen3,deepseek_v4,…] [-libraries hf,fastokens]
//	         [-prototype FILE] [-out FILE]
//
// PYTHONPATH is what scripts/tokenizers.sh prints, -data what scripts/tokenizer-data.sh
// does. Another encoder can stand beside them: -prototype names a program that, called
// as FILE bench DATA VOCABULARY native ROUND, prints samples as lines of JSON.
package main

import (
	"compress/gzip"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/eppctl/eppctl/internal/report"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "tokbench:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) > 0 && args[0] == "measure" {
		round, err := strconv.Atoi(args[3])
		if err != nil {
			return err
		}
		return measure(os.Stdout, args[1], args[2], round)
	}
	f := flag.NewFlagSet("tokbench", flag.ContinueOnError)
	rounds := f.Int("rounds", 7, "rounds over all libraries; the median counts")
	names := f.String("vocabularies", "qwen3,deepseek_v4,gptoss,llama3,llama2", "vocabularies")
	beside := f.String("libraries", "hf,fastokens", "what stands beside the native tokenizer")
	proto := f.String("prototype", "", "program of another encoder; empty for none")
	data := f.String("data", ".cache/tokenizer", "fetched models and texts")
	out := f.String("out", "out/bench-tokenizer.json", "file to write")
	if err := f.Parse(args); err != nil {
		return err
	}
	list := []library{own}
	for _, lib := range strings.Split(*beside, ",") {
		list = append(list, library(lib))
	}
	if *proto != "" {
		list = append(list, prototype)
	}
	b := bench{libraries: list, data: *data, program: *proto}
	got := results{}
	vocabularies := strings.Split(*names, ",")
	for round := 1; round <= *rounds; round++ {
		for _, name := range vocabularies {
			if err := b.round(name, round, got); err != nil {
				return err
			}
		}
		// Rounds take minutes: those that are done are kept.
		if err := report.Write(*out, got.rows()); err != nil {
			return err
		}
	}
	fmt.Print(caption)
	return report.Print(os.Stdout, got.rows())
}

// tokenizerFile returns the path of a tokenizer.json: a fetched one, or one of the test
// data, unpacked.
func tokenizerFile(name, data string) (string, error) {
	path := filepath.Join(data, "models", name, "tokenizer.json")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	f, err := os.Open(filepath.Join("testdata/tokenizer/vocab", name+".tokenizer.json.gz"))
	if err != nil {
		return "", fmt.Errorf("%w: run scripts/tokenizer-data.sh models", err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return "", err
	}
	b, err := io.ReadAll(z)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	return path, os.WriteFile(path, b, 0o644)
}

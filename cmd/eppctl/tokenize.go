package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/eppctl/eppctl/internal/inspect/tokenize"
	"github.com/eppctl/eppctl/internal/modelsource"
)

// newTokenize builds the command; run replaces what it does, for tests.
func newTokenize(a *app, run func(context.Context, *tokenize.Command) error) *cobra.Command {
	o := &tokenize.Command{}
	special := true
	if run == nil {
		run = func(ctx context.Context, o *tokenize.Command) error {
			settings, err := modelsource.FromEnv(a.getenv)
			if err != nil {
				return tokenize.Told(err)
			}
			return o.Run(ctx, settings, a.streams)
		}
	}
	cmd := &cobra.Command{
		Use:   "tokenize --model DIR|NAME",
		Short: "Turn text and requests into token ids",
		Long: `Turn what stdin brings into token ids, with the tokenizer and the chat template of
a model: one JSON array per line. The ids are those that serve computes. A body with
several prompts gives a line for each, in their order.

stdin is one text (at a terminal Ctrl-D ends it), or JSON lines: strings, or bodies
of /v1/completions, /v1/chat/completions and, told by --api, /v1/messages,
/v1/responses and /v1/embeddings. An input whose first line is a JSON string or
object is taken for JSON lines, one that is a single JSON object for a body; --input
says otherwise.

What the engine was started with beside the model is said by --chat-template,
--chat-template-kwargs, --content-format and --time-zone, which mean what the keys
of models[].tokenizer in the configuration of serve mean.

The model is a folder, or a name of the Hugging Face hub: then its tokenizer and
template files, no weights, are looked up in the hub's cache and fetched into it.
HF_HOME, HF_HUB_CACHE, HF_TOKEN, HF_ENDPOINT and HF_HUB_OFFLINE are read.

A line that cannot be tokenized ends the command; its number is told, never its
content. Chats with an image, a sound or a video are tokenized up to the first, and
stderr says so. Token ids in a body are printed as they are.`,
		Example: `  # a text, as a completion's prompt
  echo -n "Once upon a time" | eppctl tokenize --model ./Llama-3.3-70B-Instruct

  # how many tokens does this chat have?
  eppctl tokenize --model Qwen/Qwen3-8B --count < chat.json

  # what the tokens are, one a line
  echo -n "Once upon a time" | eppctl tokenize --model Qwen/Qwen3-8B --pieces

  # as an engine with other settings makes them
  eppctl tokenize --model Qwen/Qwen3-8B --chat-template chat.jinja \
    --chat-template-kwargs '{"enable_thinking": false}' --time-zone UTC < chat.json

  # a million prompts, those that cannot be tokenized told on stderr
  eppctl tokenize --model Qwen/Qwen3-8B --keep-going < prompts.jsonl > ids.jsonl`,
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for flag, values := range map[string][]string{"engine": tokenize.Engines(), "input": tokenize.Inputs(), "api": tokenize.APIs(), "content-format": tokenize.ContentFormats(), "output": tokenize.Formats()} {
				if err := oneOf(cmd, flag, values); err != nil {
					return err
				}
			}
			if o.Model == "" {
				return misuse(cmd, errors.New("--model: found nothing; expected a folder or a name of the hub"))
			}
			if cmd.Flag("special").Changed && cmd.Flag("no-special").Changed && special == o.NoSpecial {
				return misuse(cmd, errors.New("found --special and --no-special; expected one of them"))
			}
			if o.Pieces && o.Count {
				return misuse(cmd, errors.New("found --pieces and --count; expected one of them"))
			}
			o.NoSpecial = o.NoSpecial || !special
			ctx, stop := a.interruptible(cmd.Context())
			defer stop()
			return run(ctx, o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Model, "model", "", "`DIR` or NAME of the model")
	f.StringVar(&o.Revision, "revision", "", "`REVISION` of a name: branch, tag or commit (default main)")
	f.StringVar(&o.Engine, "engine", "vllm", "whose preparation of chats: vllm, sglang")
	f.StringVar(&o.Input, "input", "auto", "what stdin is: auto, text, jsonl")
	f.StringVar(&o.API, "api", "auto", "whose request bodies: auto, completions, chat, messages, responses, embeddings")
	f.StringVar(&o.ChatTemplate, "chat-template", "", "`FILE` with the engine's --chat-template (default the model's)")
	f.StringVar(&o.Kwargs, "chat-template-kwargs", "", "`JSON` object: the engine's --default-chat-template-kwargs")
	f.StringVar(&o.ContentFormat, "content-format", "auto", "the engine's --chat-template-content-format: auto, string, openai")
	f.StringVar(&o.TimeZone, "time-zone", "Local", "`ZONE` of the engine's clock, for templates that print the date: UTC, Europe/Berlin")
	f.BoolVar(&special, "special", true, "put in front of texts what the tokenizer adds; request bodies say themselves")
	f.BoolVar(&o.NoSpecial, "no-special", false, "the opposite of --special")
	f.BoolVar(&o.Count, "count", false, "print the number of tokens instead of the ids")
	f.BoolVar(&o.Pieces, "pieces", false, "print a line for each token, its id and what it stands for, quoted; -o jsonl: a field")
	f.BoolVar(&o.KeepGoing, "keep-going", false, "tell of lines that cannot be tokenized and go on; exit code 5 at the end")
	f.StringVarP(&o.Format, "output", "o", "table", "table (an array per line), jsonl (an object per line)")
	enum(cmd, "engine", tokenize.Engines())
	enum(cmd, "input", tokenize.Inputs())
	enum(cmd, "api", tokenize.APIs())
	enum(cmd, "content-format", tokenize.ContentFormats())
	enum(cmd, "output", tokenize.Formats())
	must(cmd.MarkFlagDirname("model"))
	must(cmd.MarkFlagFilename("chat-template", "jinja", "jinja2"))
	for _, flag := range []string{"revision", "chat-template-kwargs", "time-zone"} {
		must(cmd.RegisterFlagCompletionFunc(flag, cobra.NoFileCompletions))
	}
	return cmd
}

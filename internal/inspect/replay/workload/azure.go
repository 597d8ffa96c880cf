package workload

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// azure reads Azure/AzurePublicDataset, AzureLLMInferenceTrace_*.csv: a time and two
// lengths. Nothing is shared between its prompts.
type azure struct {
	list  []Request
	names numbers
	begin time.Time
	refs  int
}

// azureBlock is the block size its prompts are cut into: that of the Mooncake
// traces.
const azureBlock = 512

func newAzure() reader { return &azure{} }

// azureTimes are the forms of the 2023 and 2024 files.
var azureTimes = []string{"2006-01-02 15:04:05.9999999", "2006-01-02 15:04:05.999999-07:00", "2006-01-02 15:04:05-07:00"}

func azureTime(text string) (t time.Time, err error) {
	for _, form := range azureTimes {
		if t, err = time.Parse(form, text); err == nil {
			return t, nil
		}
	}
	return t, err
}

func (a *azure) row(line []byte) string {
	cells := strings.Split(string(line), ",")
	if len(cells) != 3 {
		return fmt.Sprintf("%d cells; expected TIMESTAMP,ContextTokens,GeneratedTokens", len(cells))
	}
	t, err := azureTime(strings.TrimSpace(cells[0]))
	if err != nil {
		return fmt.Sprintf("TIMESTAMP %q is not a time such as 2023-11-16 18:17:03.9799600", cells[0])
	}
	if a.list == nil {
		a.begin = t
	}
	var n [2]int
	for i, name := range []string{"ContextTokens", "GeneratedTokens"} {
		if n[i], err = strconv.Atoi(strings.TrimSpace(cells[i+1])); err != nil {
			return fmt.Sprintf("%s %q is not a whole number", name, cells[i+1])
		}
		if why := tokens(name, n[i]); why != "" {
			return why
		}
	}
	at := t.Sub(a.begin).Seconds()
	if at < -MaxSeconds || at > MaxSeconds {
		return "TIMESTAMP is more than ten years from the first"
	}
	prompt := max(1, n[0])
	if a.refs += blocksOf(prompt, azureBlock); a.refs > MaxBlocks {
		return fmt.Sprintf("more than %d blocks in all prompts together; use --requests", MaxBlocks)
	}
	ids := a.names.fresh(nil, blocksOf(prompt, azureBlock))
	a.list = append(a.list, Request{At: at, Prompt: prompt, Output: max(1, n[1]), Blocks: ids})
	return ""
}

func (a *azure) done() *Workload {
	return &Workload{BlockSize: azureBlock, Requests: sorted(a.list), Distinct: a.names.count}
}

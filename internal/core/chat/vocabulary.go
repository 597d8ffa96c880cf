package chat

// harmonySample is a text of the Harmony format, with the ids that it has in the
// vocabulary o200k_harmony (oss-harmony 0.0.11, openai-harmony 0.0.8): special tokens,
// letters of several scripts, digits, contractions, white space and signs.
const harmonySample = "<|start|>assistant to=functions.x<|channel|>commentary json<|message|>" +
	"Ünïcode 数据库查询 1234567 don't IT'S\r\n\n  x +=\"y\"; 👍🏽 привет<|call|><|end|>"

var harmonySampleIDs = []uint32{
	200006, 173781, 316, 28, 44580, 3700, 200005, 12606, 815, 5701, 200008,
	8858, 77, 9954, 3056, 108502, 22376, 30476, 220, 7633, 19354, 22, 4128, 8734, 31233, 46865, 220, 1215, 659, 580, 88, 10924, 160433, 52622, 121, 145259,
	200012, 200007,
}

// Vocabulary is a text, and the ids that a tokenizer must give it for the prompts of this
// renderer: the library that vLLM renders Harmony chats with has a vocabulary of its own,
// whatever lies in the model's repository. "" = the repository's is the engine's.
func (r *Renderer) Vocabulary() (sample string, ids []uint32) {
	if r.own != harmonyMode {
		return "", nil
	}
	return harmonySample, harmonySampleIDs
}

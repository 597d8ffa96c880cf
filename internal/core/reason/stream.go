package reason

// Why a rank's event stream is not live. The text that goes with the word has the
// last error or what was lost. Disconnected, NoEventsEver, Silent, EventsLate,
// WrongFraming, Undecodable and EventsSkipped are said of streams too.
const (
	Starting    Code = "starting"           // no attempt to connect has ended yet, or the publisher is to dial us
	Unreachable Code = "unreachable"        // the last attempt to connect failed
	Replaying   Code = "replaying"          // history is being fetched
	Unconfirmed Code = "engine-unconfirmed" // reconnected: the engine may be a new process
	Missing     Code = "batches-missing"    // a hole that a replay may fill
	HistoryLost Code = "history-lost"       // a hole that nothing fills
)

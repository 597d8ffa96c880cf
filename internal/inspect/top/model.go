package top

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/eppctl/eppctl/internal/core/pick"
	"github.com/eppctl/eppctl/internal/core/view"
)

// Server is the admin API as far as top needs it.
type Server interface {
	// State is one frame, with so many recent picks and the metrics page of one pod.
	State(ctx context.Context, picks int, detail string) ([]byte, error)
	// Recent is the Explanation of a pick that was made.
	Recent(ctx context.Context, id string) ([]byte, error)
}

// redrawEvery is how often ages go on where no frame comes to draw.
const redrawEvery = time.Second

// picksShown is how many recent decisions come with each frame.
const picksShown = 64

// page is one of the views.
type page int

const (
	podsPage page = iota
	eventsPage
	picksPage
	idsPage
	pages // their number
)

// model is the state of the screen. Update and View are its only methods that
// bubbletea calls, from one goroutine.
type model struct {
	server Server // nil with a file
	file   bool   // the frames are those of a file, and no more come
	addr   string // of the server, for display
	now    func() time.Time
	after  func(time.Duration, func(time.Time) tea.Msg) tea.Cmd // tea.Tick
	zone   *time.Location
	save   func(name string, text []byte) error

	width, height int
	interval      time.Duration
	glyphs        *glyphs

	history history
	sheet   *sheet // of the frame that is shown
	shown   int    // its number
	paused  bool
	failure error // why the last call failed, nil = it did not

	page     page
	orders   [pages]order
	cursors  [pages]string   // key of the selected row
	places   [pages]int      // where it stood
	tops     [pages]int      // first row shown
	unfolded map[string]bool // pods whose ranks are shown
	filter   string
	typing   entry  // what is being typed
	typed    string // the command so far
	faults   bool   // pods that are not well only
	help     bool

	detail string // pod that is shown in full, "" = the page
	ids    string // model, likewise
	card   *card  // decision that is shown, nil = none
	scroll int    // of detail, card or help

	notice string
	until  time.Time // that the notice stands

	// drawn is the screen as it was drawn last, "" = it has changed. bubbletea asks
	// for it after every message.
	drawn   string
	drawnAt time.Time
}

// card is a decision as explain shows it.
type card struct {
	id  string
	x   *pick.Explanation
	err error
}

// Messages.
type (
	// frameMsg is an answer to a poll.
	frameMsg struct {
		raw []byte
		err error
		got time.Time
		// besides: it was asked for by a key, and the next poll is due as it was.
		besides bool
	}
	pollMsg struct{} // a poll is due
	tickMsg struct{} // ages go on
	cardMsg card
)

func (m *model) Init() tea.Cmd {
	if m.file {
		return nil
	}
	return tea.Batch(m.nextPoll(), m.tick())
}

func (m *model) tick() tea.Cmd {
	return m.after(redrawEvery, func(time.Time) tea.Msg { return tickMsg{} })
}

func (m *model) nextPoll() tea.Cmd {
	return m.after(m.interval, func(time.Time) tea.Msg { return pollMsg{} })
}

// patience bounds a poll: a server that hangs is told of, and asked again.
const patience = 2 * time.Second

func (m *model) poll() tea.Cmd {
	server, detail, now := m.server, m.detail, m.now
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		raw, err := server.State(ctx, picksShown, detail)
		return frameMsg{raw: raw, err: err, got: now()}
	}
}

// ask is a poll between two others: what a key wants to see is not in the last frame.
func (m *model) ask() tea.Cmd {
	if m.file {
		return nil
	}
	poll := m.poll()
	return func() tea.Msg {
		f := poll().(frameMsg)
		f.besides = true
		return f
	}
}

func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg.(type) {
	case tickMsg:
		if m.now().Sub(m.drawnAt) >= redrawEvery/2 { // else a frame has just come
			m.drawn = ""
		}
		return m, m.tick()
	case pollMsg:
		return m, m.poll()
	}
	m.drawn = ""
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case frameMsg:
		m.take(msg)
		if msg.besides {
			return m, nil
		}
		return m, m.nextPoll()
	case cardMsg:
		if m.card != nil && m.card.id == msg.id { // it may be closed by now
			m.card = (*card)(&msg)
		}
	case tea.KeyPressMsg:
		return m, m.press(msg)
	}
	return m, nil
}

// take keeps a frame. A pause shows the one it stands at all the same.
func (m *model) take(msg frameMsg) {
	s, err := (*view.Snapshot)(nil), msg.err
	if err == nil {
		s, err = decode(msg.raw)
	}
	if m.failure = err; err != nil {
		return
	}
	m.history.add(newFrame(msg.raw, s, msg.got), m.interval/2)
	if m.paused {
		m.shown = m.history.clamp(m.shown)
		return
	}
	m.shown = m.history.newest()
	m.sheet = newSheet(&m.history, m.shown, s)
}

// step shows the frame that lies so many before or after the one that is shown.
func (m *model) step(by int) {
	if len(m.history.frames) == 0 {
		return
	}
	m.paused = true
	n := m.history.clamp(m.shown + by)
	s, err := decode(m.history.at(n).raw)
	if err != nil {
		return // it was read when it came
	}
	m.shown, m.sheet = n, newSheet(&m.history, n, s)
}

// live goes back to the newest frame.
func (m *model) live() {
	if m.file {
		m.tell("a file does not go on: < and > step")
		return
	}
	m.step(m.history.newest() - m.shown)
	m.paused = false
}

// since is how old the newest frame is.
func (m *model) since() time.Duration {
	if len(m.history.frames) == 0 {
		return 0
	}
	return max(m.now().Sub(m.history.at(m.history.newest()).got), 0)
}

// disconnected reports that there is no news: a call failed, or none was answered
// for two intervals.
func (m *model) disconnected() bool {
	return !m.file && (m.failure != nil || m.since() > 2*m.interval+patience)
}

func (m *model) tell(text string) { m.notice, m.until = text, m.now().Add(5*time.Second) }

// explain asks for the card of a decision.
func (m *model) explain(id string) tea.Cmd {
	if m.file {
		m.tell("a file has no explanations: eppctl explain --read asks a recording for one")
		return nil
	}
	m.card, m.scroll = &card{id: id}, 0
	server := m.server
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		raw, err := server.Recent(ctx, id)
		return cardMsg(newCard(id, raw, err))
	}
}

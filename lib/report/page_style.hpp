#pragma once
// The style and the script of report pages, kept inside them: a page loads nothing.

namespace vpp {

/// CSS: light and dark by the reader's setting; the palette of the curves (.c0 to .c7), the colours of actions.
extern const char* const kPageStyle;

/// JavaScript: figures of the curves below the mouse. Without it the page lacks nothing else.
extern const char* const kPageScript;

/// Colours in the palette.
inline constexpr int kNumColours = 8;

}  // namespace vpp

#pragma once
// Charts of curves over steps as inline SVG. Colours come from the style of the page (report/page_style.hpp); what the
// mouse shows is in attributes that the page's script reads.
#include <string>
#include <vector>

#include "report/thinning.hpp"

namespace vpp {

/// One curve of a chart.
struct ChartCurve {
    std::string name;  ///< in the legend; any text
    Curve curve;
    int colour = 0;       ///< of the palette, from 0
    bool faint = false;   ///< a background of another curve of the same name: not in the legend
    bool dotted = false;  ///< points with a dashed line between them
};

/// How the numbers of an axis are written.
enum class Quantity { Plain, Count, Bytes, Share };

struct Chart {
    std::string title;
    std::string note;  ///< below the title; may be empty
    Quantity quantity = Quantity::Plain;
    bool from_zero = false;  ///< the axis begins at 0
    std::vector<ChartCurve> curves;
};

/// Round numbers that cover low to high, at most `most` + 2 of them, ascending.
/// Requires: finite, low <= high, most >= 2.
std::vector<double> axis_ticks(double low, double high, int most);

/// The same in the unit that the numbers are written in: round bytes are round KiB or MiB.
std::vector<double> quantity_ticks(double low, double high, int most, Quantity quantity);

/// The number as an axis has it: "2.5", "12 K", "1.5 GiB", "25 %".
std::string quantity_text(double value, Quantity quantity);

/// The texts of the ticks of an axis, with as many decimals as tell neighbours apart.
std::vector<std::string> tick_texts(const std::vector<double>& ticks, Quantity quantity);

/// A <figure> with its caption and its legend; empty when no curve has a finite value. Curves of many points are
/// thinned, and the note says so.
std::string draw_chart(const Chart& chart);

}  // namespace vpp

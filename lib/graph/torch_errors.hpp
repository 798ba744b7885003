#pragma once
// What LibTorch's errors mean to a user. It stands in their texts: the JIT passes an op's error on inside another.
#include <exception>
#include <functional>
#include <string>
#include <string_view>

namespace vpp {

/// Throws what is known of LibTorch's error; returns otherwise.
///   std::bad_alloc      the host has no memory left
///   Error{OutOfMemory}  a device has none left
///   Error{BadData}      an op on a card was given what it cannot take (cards say that late), or has no exact kernel
///   Error{RankLost}     a card has failed, so that only a new process can use it
void throw_if_known(const std::exception& error);

/// Whether it says that the allocator of a device had no memory for a request.
bool tells_of_full_device(const std::exception& error);

/// The line that says what is wrong: the interpreter puts where it was before it.
std::string core_of(std::string_view text);

/// The first line that is not empty.
std::string first_line(std::string_view text);

/// "the op aten::mm in 'head' fails: shapes", of an op (op_text in graph/jit_graph.hpp) and LibTorch's text, with
/// advice where the cause is known.
std::string op_failure(const std::string& op, std::string_view text);

/// What an error in a run of ops says of the model: which op failed where its graph has op names (graph/op_names.hpp).
std::string model_failure(std::string_view text);

/// Runs `work`. What throw_if_known knows of LibTorch's error in it is thrown with `position` before its text; all else
/// as it is.
void run_known(const std::function<void()>& work, const std::string& position = "");

}  // namespace vpp

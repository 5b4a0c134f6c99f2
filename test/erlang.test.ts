/**
 * `$.map` and `$.filter`: the part of Erlang that a fun may be written in, what is refused with its
 * place, and the bounds of what a fun may do.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { expanded, mistakeOf, runLogic } from './support/logic-context.ts'

/** [the fun, the list as JSON, the result of `$.map` as JSON] */
const maps: readonly (readonly [fun: string, list: string, gives: string])[] = [
  // The list.
  ['fun(X) -> X end', '[]', '[]'],
  ['fun(X) -> X end', 'null', '[]'],
  ['fun(X) -> X end', '"[1.10]"', '[1.10]'],
  ['fun(X) -> X end', '"text"', '[]'],
  [
    'fun(X) -> X end',
    '[1.10,"x",{"y":2.0},[],{},null,1e400]',
    '[1.10,"x",{"y":2.0},[],{},null,1e400]',
  ],
  ['fun({K, V}) -> {K, V + 1} end', '{"a":1,"b":2}', '{"a":2,"b":3}'],
  ['fun(item) -> item * 2 end', '[1]', '[2]'],
  ['fun(user) -> user.age >= 18 end', '[{"age":20},{"age":17},{}]', '[true,false,true]'],
  // Numbers: integers are exact, `/` gives a float.
  ['fun(X) -> (X + 1) * -2 end', '[1,2]', '[-4,-6]'],
  [
    'fun(X) -> X + 1 end',
    '[9007199254740991,12345678901234567890]',
    '[9007199254740992,12345678901234567891]',
  ],
  ['fun(X) -> X * X end', '[12345678901234567890]', '[152415787532388367501905199875019052100]'],
  ['fun(X) -> X * 1.0 end', '[3,1e2,9007199254740993]', '[3.0,100.0,9007199254740992.0]'],
  ['fun(X) -> X / 2 end', '[1,4,3.0]', '[0.5,2.0,1.5]'],
  ['fun(X) -> X div 2 - X rem 2 end', '[5,-5,9007199254740993]', '[1,-1,4503599627370495]'],
  ['fun(X) -> {1, 3, 1} = {1, X div 2, X rem 2}, X end', '[7]', '[7]'],
  ['fun(X) -> -X end', '[0,1,-1.50]', '[0,-1,1.5]'],
  ['fun(X) -> +X end', '[1.10]', '[1.10]'],
  ['fun(X) -> X band 6 bor 8 bxor 1 end', '[5]', '[13]'],
  ['fun(X) -> bnot X bsl 2 end', '[5]', '[-24]'],
  ['fun(X) -> 1 bsl X end', '[0,70,-1,-5000]', '[1,1180591620717411303424,0,0]'],
  ['fun(X) -> X bsr 1 end', '[5,-5]', '[2,-3]'],
  ['fun(X) -> round(X) end', '[0.5,-0.5,2.4,7,1e20]', '[1,-1,2,7,100000000000000000000]'],
  ['fun(X) -> 007 + X end', '[0]', '[7]'],
  // Comparisons, by value, by kind and between kinds.
  ['fun(X) -> X == 1 end', '[1,1.0,"1",null]', '[true,true,false,false]'],
  ['fun(X) -> X =:= 1 end', '[1,1.0,"1"]', '[true,false,false]'],
  ['fun(X) -> X =/= 1.0 end', '[1,1.0,1.00]', '[true,false,false]'],
  ['fun(X) -> X /= "a" end', '["a","b",1]', '[false,true,true]'],
  ['fun(X) -> X < "b" end', '["a","b","ab","",1,null]', '[true,false,true,true,true,true]'],
  ['fun(X) -> X > 5 end', '[6,"a",null,[],{}]', '[true,true,true,true,true]'],
  ['fun(X) -> X >= 9007199254740992.0 end', '[9007199254740991,9007199254740993]', '[false,true]'],
  ['fun(X) -> [1, X] < [1, 2, 0] end', '[2,3]', '[true,false]'],
  ['fun(X) -> {X, 1} < {0, 0, 0} end', '[9]', '[true]'],
  ['fun(X) -> X == [{<<"a">>, 1}] end', '[{"a":1},{"a":2},{}]', '[true,false,false]'],
  ['fun(X) -> #{1 => X} == #{1 => 1.0} end', '[1,2]', '[true,false]'],
  ['fun(X) -> "\\x{ffff}" < X end', '["😀"]', '[true]'],
  // Logic.
  ['fun(X) -> not X xor true end', '[true,false]', '[true,false]'],
  ['fun(X) -> X or true and false end', '[true,false]', '[true,false]'],
  ['fun(X) -> 1 > 2 orelse X end', '[true,7]', '[true,7]'],
  ['fun(X) -> X andalso 1 / 0 end', '[false]', '[false]'],
  ['fun(X) -> is_integer(X) andalso X > 1 orelse X == "a" end', '[1,2,"a"]', '[false,true,true]'],
  // Texts and binaries.
  ['fun(X) -> <<"a", X/binary, "é"/utf8>> end', '["b",""]', '["abé","aé"]'],
  ['fun(X) -> <<>> == X end', '["",[]]', '[true,false]'],
  ['fun(X) -> "a" ++ X end', '["b"]', '["ab"]'],
  ['fun(_) -> "\\"\\\\\\n\\s\\x41\\x{1F600}\\101" end', '[1]', '["\\"\\\\\\n A😀A"]'],
  ['fun(X) -> A=<<"x">>, A == X end', '["x"]', '[true]'],
  ["fun(X) -> 'x y' end % as Erlang has it\n", '[1]', '["x y"]'],
  ['fun(X) -> % the first\n X % and "only"\n end', '[1]', '[1]'],
  // Lists, tuples and maps.
  ['fun(X) -> [1 | X] ++ [2] ++ [] end', '[[0]]', '[[1,0,2]]'],
  ['fun(X) -> [1, 2, 3, 2] -- X -- [2] end', '[[2],[2,2]]', '[[1,2,3,2],[1,3,2]]'],
  ['fun(X) -> X -- [{<<"a">>, 1}] end', '[{"a":1},{"a":1,"b":2}]', '[{},{"b":2}]'],
  ['fun(X) -> [{<<"a">>, 1}, {b, 2}, {<<"a">>, X}] end', '[3]', '[{"a":1,"b":2}]'],
  ['fun(X) -> #{<<"a">> => 1, b => [#{}], <<"a">> => X} end', '[3]', '[{"b":[{}],"a":3}]'],
  ['fun(X) -> [{<<"__proto__">>, X}] end', '[3]', '[{"__proto__":3}]'],
  ['fun(X) -> hd(tl(X)) end', '[[1,2],{"a":1,"b":2}]', 'fails: a tuple is no JSON'],
  ['fun(X) -> tl(X) end', '[[1,2],{"a":1,"b":2},{"a":1}]', '[[2],{"b":2},{}]'],
  ['fun(X) -> [Y * Z || Y <- X, Z <- X, Y < Z] end', '[[1,2,3]]', '[[2,3,6]]'],
  ['fun(X) -> [{K, V} || {K, V} <- X, V > 1] end', '[{"a":1,"b":2}]', '[{"b":2}]'],
  ['fun(X) -> Y = 1, [Y || Y <- X] ++ [Y] end', '[[2,3]]', '[[2,3,1]]'],
  ['fun(X) -> [] end', '[{}]', '[[]]'],
  ['fun(_) -> ok end', '[1]', '["ok"]'],
  ['fun(_) -> undefined end', '[1]', '[null]'],
  // Clauses, patterns and matches.
  [
    'fun(1) -> <<"one">>; (-1) -> <<"minus">>; (<<"x">>) -> <<"x">>; (null) -> 0; (_) -> 9 end',
    '[1,-1,"x",null,1.0]',
    '["one","minus","x",0,9]',
  ],
  [
    'fun([H | T]) -> {<<"a">>, V} = H, T ++ [V]; ([]) -> none end',
    '[{"a":1,"b":2},{}]',
    'fails: a tuple is no JSON',
  ],
  ['fun([{<<"a">>, V} | T]) -> [{<<"v">>, V} | T] end', '[{"a":1,"b":2}]', '[{"v":1,"b":2}]'],
  ['fun([{_, V} | T]) -> T end', '[{"a":1,"b":2},{"a":1}]', '[{"b":2},{}]'],
  [
    'fun([X, X]) -> same; ([_, _]) -> two; (_) -> other end',
    '[[1,1],[1,1.0],[1]]',
    '["same","two","other"]',
  ],
  ['fun(#{<<"a">> := V}) -> V; (_) -> none end', '[{"a":1},{"b":2},7]', '[1,"none","none"]'],
  ['fun(X) -> #{k := {_, Y}} = #{k => {1, X}}, Y end', '[7]', '[7]'],
  ['fun(<<"id-", N/binary>>) -> N; (<<"x">>) -> 0 end', '["id-7","x"]', '["7",0]'],
  ['fun(Y = {_, V}) -> Y end', '{"a":1}', '{"a":1}'],
  ['fun(X) -> A = B = X + 1, A * B end', '[1]', '[4]'],
  ['fun(X) -> X = 1, X end', '[1]', '[1]'],
  [
    'fun(X) when X > 1, X < 4; X == 9 -> in; (_) -> out end',
    '[1,2,9]',
    '["out","in","out"]'.replace('"out"]', '"in"]'),
  ],
  ['fun(X) when X + 1 > 0 -> number; (_) -> other end', '[1,"a"]', '["number","other"]'],
  ['fun(X) -> case X of {_, _} -> 1; N when N > 5 -> N; _ -> 0 end end', '[1,7]', '[0,7]'],
  ['fun(X) -> case X of 1 -> Y = 2; Z -> Y = Z end, Y end', '[1,7]', '[2,7]'],
  ['fun(X) -> if X > 1 -> big; true -> small end end', '[1,2]', '["small","big"]'],
  ['fun(X) -> begin Y = X, Y + 1 end end', '[1]', '[2]'],
  // Members of an object, which is not of Erlang.
  ['fun(X) -> X.a.b end', '[{"a":{"b":"c"}},{"a":1},7]', '["c",null,null]'],
  ['fun(X) -> X.__proto__ end', '[{}]', '[null]'],
  ['fun(X) -> X.n =< 2 end', '[{"n":2},{"n":3},{}]', '[true,false,false]'],
  // Functions.
  ['fun(X) -> eutils:get_value(<<"the id">>, X.a) end', '[{"a":{"the id":1.0}},7]', '[1.0,null]'],
  ['fun(X) -> proplists:get_value(<<"a">>, X) end', '[{"a":null},{}]', '[null,null]'],
  ['fun(X) -> proplists:get_value(<<"a">>, X, 5) end', '[{"a":1},{"b":1}]', '[1,5]'],
  ['fun(X) -> proplists:get_value(a, [b, {a, 1}, a]) end', '[1]', '[1]'],
  ['fun(X) -> proplists:delete(<<"a">>, X) end', '[{"a":1,"b":2},{"a":1},[]]', '[{"b":2},{},[]]'],
  ['fun(X) -> proplists:get_keys(X) end', '[{"b":1,"a":2}]', '[["a","b"]]'],
  ['fun(X) -> proplists:is_defined(<<"a">>, X) end', '[{"a":null},{}]', '[true,false]'],
  ['fun(X) -> proplists:get_bool(<<"a">>, X) end', '[{"a":true},{"a":1},{}]', '[true,false,false]'],
  ['fun(X) -> [proplists:lookup(<<"a">>, X)] end', '[{"a":1,"b":2}]', '[{"a":1}]'],
  ['fun(X) -> proplists:lookup(<<"a">>, X) end', '[{}]', '["none"]'],
  ['fun(X) -> proplists:lookup_all(a, [{a, X}, b, a]) end', '[1]', '[{"a":1}]'],
  ['fun(X) -> proplists:get_all_values(a, [{a, X}, {b, 2}, {a, 3}]) end', '[1]', '[[1,3]]'],
  ['fun(X) -> proplists:append_values(a, [{a, [X, 2]}, {a, 3}]) end', '[1]', '[[1,2,3]]'],
  ['fun(X) -> proplists:compact([{a, true}, {b, X}]) == [a, {b, 1}] end', '[1]', '[true]'],
  ['fun(X) -> proplists:unfold([a, {b, X}]) end', '[1]', '[{"a":true,"b":1}]'],
  [
    'fun(X) -> {[A, _], R} = proplists:split(X, [<<"a">>, <<"c">>]), {A, R} == {[{<<"a">>, 1}], [{<<"b">>, 2}]} end',
    '[{"a":1,"b":2}]',
    '[true]',
  ],
  ['fun(X) -> proplists:to_map([{a, X}, {a, 2}, b]) end', '[1]', '[{"a":1,"b":true}]'],
  ['fun(X) -> proplists:from_map(#{b => X, a => 2}) end', '[1]', '[{"a":2,"b":1}]'],
  ['fun(X) -> proplists:property({a, true}) == proplists:property(a, true) end', '[1]', '[true]'],
  ['fun(X) -> eutils:from_json(X) end', '["{\\"a\\":1.10}","[]"]', '[{"a":1.10},[]]'],
  ['fun(X) -> eutils:from_json(X, [return_maps]) end', '["{\\"a\\":1.10}"]', '[{"a":1.10}]'],
  ['fun(X) -> base64:encode(X, #{mode => urlsafe}) end', '["??>"]', '["Pz8-"]'],
  ['fun(X) -> base64:encode(X, #{padding => false}) end', '["a"]', '["YQ"]'],
  ['fun(X) -> base64:decode(X, #{mode => urlsafe}) end', '["Pz8-"]', '["??>"]'],
  ['fun(X) -> base64:decode(X, #{padding => false}) end', '["YQ","YQ=="]', '["a","a"]'],
  [
    'fun(X) -> proplists:substitute_aliases([{a, b}, {a, c}], [a, {a, X}, {a, 1, 2}, d]) == [b, {b, 1}, {b, 1, 2}, d] end',
    '[1]',
    '[true]',
  ],
  ['fun(X) -> proplists:substitute_aliases([{<<"a">>, <<"b">>}], X) end', '[{"a":1}]', '[{"b":1}]'],
  [
    'fun(X) -> proplists:substitute_negations([{a, b}], [a, {a, true}, {a, false}, {a, X}]) == [{b, false}, {b, false}, b, b] end',
    '[1]',
    '[true]',
  ],
  [
    'fun(X) -> proplists:expand([{foo, [bar, X]}], [fie, foo, fum, {foo, 1}]) == [fie, bar, 1, fum] end',
    '[1]',
    '[true]',
  ],
  [
    'fun(X) -> proplists:expand([{{foo, true}, [bar]}], [{foo, false}, X, foo]) == [{foo, false}, 1, foo] end',
    '[1]',
    '[true]',
  ],
  [
    'fun(X) -> proplists:normalize([no_a, {b, X}], [{negations, [{no_a, a}]}, {aliases, [{b, c}]}, {expand, [{{c, 1}, [{d, true}]}]}]) == [{a, false}, d] end',
    '[1]',
    '[true]',
  ],
  [
    'fun(X) -> proplists:to_map([{a, X}, b], [{aliases, [{b, c}]}]) end',
    '[1]',
    '[{"a":1,"c":true}]',
  ],
  ['fun(X) -> eutils:to_json([{<<"a">>, X}]) end', '[1.10]', '["{\\"a\\":1.10}"]'],
  ['fun(X) -> base64:decode(base64:encode(X)) end', '["Київ",""]', '["Київ",""]'],
  ['fun(X) -> binary:split(X, <<",">>) end', '["a,b,c","a"]', '[["a","b,c"],["a"]]'],
  [
    'fun(X) -> binary:split(X, [<<",">>, <<", ">>], [global]) end',
    '["a, b,c,"]',
    '[["a","b","c",""]]',
  ],
  ['fun(X) -> binary:split(X, <<".">>, [global, trim_all]) end', '[".a..b."]', '[["a","b"]]'],
  ['fun(X) -> binary:split(X, <<".">>, [global, trim]) end', '["a..b.."]', '[["a","","b"]]'],
  ['fun(X) -> binary:replace(X, <<"a">>, <<"$&">>) end', '["banana"]', '["b$&nana"]'],
  ['fun(X) -> binary:replace(X, <<"a">>, <<>>, [global]) end', '["banana"]', '["bnn"]'],
  ['fun(X) -> binary_to_float(X) end', '["1.50","-2.0e3"]', '[1.5,-2000.0]'],
  [
    'fun(X) -> binary_to_integer(X) + 1 end',
    '["+41","-1","12345678901234567890"]',
    '[42,0,12345678901234567891]',
  ],
  ['fun(X) -> erlang:integer_to_binary(X) end', '[255,-1]', '["255","-1"]'],
  ['fun(X) -> integer_to_binary(X, 16) end', '[255]', '["FF"]'],
  [
    'fun(X) -> [is_integer(X), is_float(X), is_number(X)] end',
    '[1,1.0,"1"]',
    '[[true,false,true],[false,true,true],[false,false,false]]',
  ],
  [
    'fun(X) -> [is_binary(X), is_list(X), is_boolean(X)] end',
    '["a",[],{},null,true]',
    '[[true,false,false],[false,true,false],[false,true,false],[false,false,false],[false,false,true]]',
  ],
  // What Erlang answers with an exception.
  ['fun(X) -> X + 1 end', '["2"]', 'fails: "2" + 1 has no value'],
  ['fun(X) -> X.n + 1 end', '[{}]', 'fails: undefined + 1 has no value'],
  ['fun(X) -> X + 1 end', '[1e400]', 'fails: 1e400 + 1 has no value'],
  ['fun(X) -> 1 / X end', '[0]', 'fails: 1 / 0 has no value'],
  ['fun(X) -> 1 rem X end', '[0]', 'fails: 1 rem 0 has no value'],
  ['fun(X) -> 1.5 div X end', '[1]', 'fails: 1.5 div 1 has no value'],
  ['fun(X) -> X * 1e308 end', '[10]', 'fails: 10 * 1e+308 has no value'],
  ['fun(X) -> not X end', '[1]', 'fails: not 1 has no value'],
  ['fun(X) -> X andalso true end', '[1]', 'fails: andalso: 1 is neither true nor false'],
  ['fun(X) -> X ++ [1] end', '["a"]', 'fails: "a" ++ an array has no value'],
  ['fun(X) -> <<"a", X/binary>> end', '[1]', 'fails: <<…>> has no value for "a", 1'],
  ['fun(X) -> [1 | X] end', '[2]', 'fails: […|…] has no value for 1, 2'],
  ['fun(1) -> 1 end', '[2]', 'fails: no clause of the fun fits 2'],
  ['fun(X) -> case X of 1 -> 1 end end', '[{}]', 'fails: no clause of the case fits an object'],
  ['fun(X) -> if X > 5 -> 1 end end', '[2]', 'fails: no clause of the if fits true'],
  ['fun(X) -> {A, B} = X, A end', '[[1,2]]', 'fails: no match of an array'],
  ['fun(X) -> [Y || Y <- X] end', '[1]', 'fails: 1 is no list'],
  ['fun(X) -> [Y || Y <- [1], X] end', '[1]', 'fails: the filter gives 1, neither true nor false'],
  ['fun(X) -> {X} end', '[1]', 'fails: a tuple is no JSON'],
  ['fun(X) -> [{X, 1}] end', '[1]', 'fails: 1 is no key'],
  ['fun(X) -> #{[] => 1} end', '[1]', 'fails: an array is no key'],
  ['fun(X) -> hd(X) end', '[[]]', 'fails: hd has no value for an array'],
  [
    'fun(X) -> proplists:get_value(a, X) end',
    '[1]',
    'fails: proplists:get_value has no value for a, 1',
  ],
  ['fun(X) -> eutils:from_json(X) end', '["{"]', 'fails: eutils:from_json has no value for "{"'],
  ['fun(X) -> base64:decode(X) end', '["a b"]', 'fails: base64:decode has no value for "a b"'],
  [
    'fun(X) -> base64:decode(X, #{mode => other}) end',
    '["YQ=="]',
    'fails: base64:decode has no value for "YQ==", a map',
  ],
  [
    'fun(X) -> proplists:expand([a], [X]) end',
    '[1]',
    'fails: proplists:expand has no value for an array, an array',
  ],
  [
    'fun(X) -> proplists:normalize([X], [{other, []}]) end',
    '[1]',
    'fails: proplists:normalize has no value for an array, an array',
  ],
  ['fun(X) -> base64:decode(X) end', '["/w=="]', 'fails: base64:decode has no value for "/w=="'],
  ['fun(X) -> binary:split(X, <<>>) end', '["a"]', 'fails: binary:split has no value for "a", ""'],
  [
    'fun(X) -> binary_to_integer(X) end',
    '["1.5"]',
    'fails: binary_to_integer has no value for "1.5"',
  ],
  ['fun(X) -> binary_to_float(X) end', '["1"]', 'fails: binary_to_float has no value for "1"'],
  [
    'fun(X) -> integer_to_binary(X, 99) end',
    '[1]',
    'fails: integer_to_binary has no value for 1, 99',
  ],
]

for (const [fun, list, gives] of maps) {
  test(`$.map: ${fun} over ${list}`, () => {
    assert.equal(expanded(`$.map(${fun}, {{a}})`, `{"a":${list}}`), gives)
  })
}

const texts: readonly (readonly [text: string, data: string, gives: string])[] = [
  ['x $.map(fun(X) -> X end, {{a}})', '{"a":[1]}', '"x [1]"'],
  ['$.map(fun(X) -> X end, {{b}})', '{}', '[]'],
  ['$.map(fun(X) -> X + 1 end, $.filter(fun(X) -> X > 1 end, [1,2,3]))', '{}', '[3,4]'],
  ['$.map(fun(X) -> [{<<"a">>, X}] end,\n  [{{a}},2])', '{"a":1}', '[{"a":1},{"a":2}]'],
  // What does not close is text.
  ['$.map(fun(X) -> X', '{}', '"$.map(fun(X) -> X"'],
  ['$.filter(fun(X) -> X =/= "" andalso X.a /= 1 end, {{l}})', '{"l":["",{"a":1},2]}', '[2]'],
  ['$.filter(fun(X) ->\n  X > 1\nend, {{l}})', '{"l":[1,2.50]}', '[2.50]'],
  ['$.filter(fun({_, V}) -> V > 1 end, {{o}})', '{"o":{"a":1,"b":2}}', '{"b":2}'],
  ['$.filter(fun({_, V}) -> V > 9 end, {{o}})', '{"o":{"a":1,"b":2}}', '{}'],
  ['$.filter(fun(X) -> X end, {{a}})', '{"a":[1]}', 'fails: $.filter: 1 is neither true nor false'],
]

for (const [text, data, gives] of texts) {
  test(`${text} over ${data}`, () => assert.equal(expanded(text, data), gives))
}

const mistakes: readonly (readonly [text: string, mistake: string])[] = [
  ['$.map({{a}})', '"fun" was expected at character 7'],
  ['$.map(fun() -> 1 end, {{a}})', 'an expression was expected at character 11'],
  ['$.map(fun(A, B) -> 1 end, {{a}})', '")" was expected at character 12'],
  ['$.map(fun(end) -> 1 end, {{a}})', '"end" was not expected at character 11'],
  ['$.map(fun(X + 1) -> 1 end, {{a}})', 'a pattern was expected at character 11'],
  ['$.map(fun(X) -> Y end, {{a}})', 'the variable Y has no value at character 17'],
  ['$.map(fun(X) -> _ end, {{a}})', 'the variable _ has no value at character 17'],
  [
    '$.map(fun(X) -> case X of 1 -> Y = 1; _ -> 2 end, Y end, {{a}})',
    'the variable Y has no value at character 51',
  ],
  ['$.map(fun(X) -> [Y || Y <- X], Y end, [])', 'the variable Y has no value at character 32'],
  ['$.map(fun(X) -> {{y}} end, {{a}})', 'a template cannot stand in a fun at character 17'],
  ['$.map(fun(X) -> $.math(1) end, {{a}})', 'this is no Erlang at character 17'],
  ['$.map(fun(X) -> X end {{a}})', '"," was expected at character 23'],
  ['$.map(fun(X) -> X * end, {{a}})', '"end" was not expected at character 21'],
  ['$.map(fun(X) -> X % end)', 'this is no Erlang at character 19'],
  ['$.map(fun(X) -> (X end, {{a}}))', '")" was expected at character 20'],
  ['$.map(fun(X) -> "a)', 'this is no Erlang at character 17'],
  ['$.map(fun(X) -> 1 < X < 3 end, {{a}})', '"end" was expected at character 23'],
  ['$.map(fun(X) -> fun(Y) -> Y end end, {{a}})', '"fun" was not expected at character 17'],
  ['$.map(fun(X) -> try X end end, {{a}})', '"try" was not expected at character 17'],
  [
    '$.map(fun(X) -> os:cmd(X) end, {{a}})',
    '$.map and $.filter have no function os:cmd/1 at character 17',
  ],
  [
    '$.map(fun(X) -> binary:split(X) end, {{a}})',
    '$.map and $.filter have no function binary:split/1 at character 17',
  ],
  [
    '$.map(fun(X) -> constructor(X) end, {{a}})',
    '$.map and $.filter have no function constructor/1 at character 17',
  ],
  [
    '$.map(fun(X) -> <<X>> end, [])',
    'a part of a binary is a text in quotes or ends in /binary at character 19',
  ],
  [
    '$.map(fun(#{a => X}) -> X end, [])',
    'a pattern of a map is written #{Key := Pattern} at character 11',
  ],
  ['$.map(fun(X) -> #{a := X} end, [])', 'a map is written #{Key => Value} at character 17'],
  ['$.map(fun(X) -> X#{a => 1} end, [])', '"end" was expected at character 18'],
  [
    `$.map(fun(X) -> ${'9'.repeat(2_000)} end, [])`,
    `${'9'.repeat(128)}… is too large at character 17`,
  ],
  [
    `$.map(fun(X) -> ${'('.repeat(40)}1${')'.repeat(40)} end, [])`,
    'nested deeper than 32 at character 49',
  ],
  [
    `$.map(fun(X) -> [X || ${'true, '.repeat(40)}true] end, [])`,
    'more than 32 parts of a comprehension at character 215',
  ],
]

for (const [text, mistake] of mistakes) {
  test(`refuses ${text.slice(0, 60)}`, () =>
    assert.ok(mistakeOf(text).endsWith(`: ${mistake}`), mistakeOf(text)))
}

const steps_passed = 'fails: more than 1000000 steps'
const doubled = (from: string, by: (name: string) => string, name = 'A'): string =>
  Array.from(
    { length: 60 },
    (_, at) => `${name}${at + 1} = ${by(at === 0 ? from : `${name}${at}`)}`,
  ).join(', ')

const hundreds = `H = [${Array(100).fill('1').join(',')}]`

/** [what, the fun, the result over a list of 1,000 numbers in a task of 131,072 bytes] */
const bounds: readonly (readonly [what: string, fun: string, gives: string])[] = [
  ['a result over the size of a task', `fun(X) -> "${'x'.repeat(1_000)}" end`, 'fails: '],
  [
    'a list that doubles',
    `fun(X) -> ${doubled('[X]', (name) => `${name} ++ ${name}`)} end`,
    'fails: ',
  ],
  [
    'a text that doubles',
    `fun(X) -> ${doubled('"x"', (name) => `${name} ++ ${name}`)} end`,
    'fails: ',
  ],
  [
    'a part that is held many times',
    `fun(X) -> ${doubled('[X]', (name) => `[${name}, ${name}]`)} end`,
    'fails: ',
  ],
  [
    'an integer that doubles its digits',
    `fun(X) -> ${doubled('12', (name) => `${name} * ${name}`)} end`,
    'fails: ',
  ],
  ['a shift', 'fun(X) -> 1 bsl 1000000000000 end', 'fails: 1 bsl 1000000000000 has no value'],
  [
    'a comparison of what is held many times',
    `fun(X) -> ${doubled('[X]', (name) => `[${name}, ${name}]`)}, ${doubled('[X]', (name) => `[${name}, ${name}]`, 'B')}, A60 == B60 end`,
    steps_passed,
  ],
  [
    'combinations',
    `fun(X) -> [1 || ${'ABCDEFGHIJ'
      .split('')
      .map((name) => `${name} <- [1,2,3,4,5,6]`)
      .join(', ')}] end`,
    steps_passed,
  ],
  [
    'guards that pass the limit',
    `fun(X) when [1 || ${'ABCDEFGHIJ'
      .split('')
      .map((name) => `${name} <- [1,2,3,4,5,6], ${name} < 0 orelse true`)
      .join(', ')}] -> 1; (_) -> 2 end`,
    steps_passed,
  ],
  [
    'a search for a long text',
    `fun(X) -> [binary:split(T, P, [global]) || T <- ["${'a'.repeat(60_000)}"], P <- ["${'a'.repeat(30_000)}b"]] end`,
    steps_passed,
  ],
  [
    'a list that is printed again and again',
    `fun(X) -> L = [[A, B] || A <- [1,2,3,4,5], B <- [1,2,3,4,5]], [eutils:to_json([L, L, L, L]) || ${'ABCDEF'
      .split('')
      .map((name) => `${name}1 <- [1,2,3,4,5,6,7,8]`)
      .join(', ')}] end`,
    steps_passed,
  ],
  [
    'a calculation with long integers',
    `fun(X) -> N = binary_to_integer("${'9'.repeat(500)}"), ${hundreds}, [N * N div 7 || _ <- H, _ <- H, _ <- H] end`,
    steps_passed,
  ],
  [
    'a guard that fails again and again',
    `fun(X) -> ${hundreds}, [case "${'x'.repeat(1_000)}" of T when T + 1 > 0 -> 1; _ -> 2 end || _ <- H, _ <- H, _ <- H] end`,
    steps_passed,
  ],
  [
    'a text of a great many parts',
    `fun(X) -> T = "${'x'.repeat(100_000)}", <<${Array(6_000).fill('T/binary').join(', ')}>> end`,
    'fails: ',
  ],
  [
    'a great many patterns',
    `fun(X) -> T = "${'x'.repeat(100_000)}", ${hundreds}, binary:split("a", [T || _ <- H, _ <- H]) end`,
    steps_passed,
  ],
  [
    'a replacement that grows',
    `fun(X) -> binary:replace("${'a'.repeat(1_000)}", "a", "${'b'.repeat(1_000)}", [global]) end`,
    'fails: ',
  ],
]

for (const [what, fun, gives] of bounds) {
  test(`${what} is bounded`, () => {
    const list = { a: Array.from({ length: 1_000 }, (_, at) => at) }
    const started = performance.now()
    const made = expanded(`$.map(${fun}, {{a}})`, list)
    assert.ok(made.startsWith(gives), made)
    assert.ok(performance.now() - started < 5_000)
  })
}

test('a number of many digits costs as many steps', () => {
  const digits = '9'.repeat(60_000)
  const numbers = `{"a":[[${digits},[${Array(2_000).fill('1').join(',')}]]]}`
  for (const item of ['is_float(N)', '[N == 1 || _ <- L]', '[N || _ <- L]', 'N + N']) {
    const started = performance.now()
    const text = `$.map(fun([N, L]) -> [[${item}, 1] || _ <- L, _ <- L] end, {{a}})`
    assert.match(expanded(text, numbers), /^fails: /, item)
    assert.ok(performance.now() - started < 5_000, item)
  }
  assert.match(expanded('$.map(fun([N, L]) -> [N || _ <- L] end, {{a}})', numbers), /^fails: $/)
})

test('a fun that fails gives the tags of its logic', () => {
  const tagOf = (fun: string): unknown => {
    const extra = { b: `$.map(${fun}, {{a}})` }
    const logic = { type: 'set_param', extra, extra_type: { b: 'array' }, err_node_id: 'a' }
    return (runLogic(JSON.stringify(logic), { a: [1] }) as { tag?: string }).tag
  }
  assert.equal(tagOf('fun(X) -> X / 0 end'), 'set_param_wrong_convert_param')
  assert.equal(tagOf('fun(X) -> {X} end'), 'set_param_wrong_convert_param')
  assert.equal(tagOf(bounds[1]?.[1] ?? ''), 'set_param_task_size_overflow')
  assert.equal(tagOf('fun(X) -> {<<"k">>, X} end'), 'set_param_wrong_convert_param')
})

test('a result as large as the task may be', () => {
  const list = { a: Array.from({ length: 1_000 }, () => 1) }
  const text = `$.map(fun(X) -> "${'x'.repeat(1_000)}" end, {{a}})`
  assert.equal(expanded(text, list, { task_bytes_max: 2_000_000 }).length, 1_003 * 1_000 + 1)
})

test('a text of funs that do not close is read in linear time', () => {
  for (const piece of [
    '$.map(fun(A)->1%',
    '$.map(fun(A)->"',
    "$.map(fun(A)->'",
    '$.map(fun(A)->(1,',
  ]) {
    const started = performance.now()
    expanded(piece.repeat(50_000))
    assert.ok(performance.now() - started < 10_000, piece)
  }
})

test('long chains, bodies and lists do not nest', () => {
  const long = 20_000
  for (const [text, gives] of [
    [`1${' + 1'.repeat(long)}`, long + 1],
    [`hd([1]${' ++ [1]'.repeat(1_000)})`, 1],
    [`${'- '.repeat(long)}1`, 1],
    [`${'A = '.repeat(long)}1`, 1],
    [`${'1, '.repeat(long)}1`, 1],
    [`hd([${'1, '.repeat(long)}1])`, 1],
    [`true${' andalso true'.repeat(long)}`, true],
  ] as const) {
    assert.equal(expanded(`$.map(fun(X) -> ${text} end, [1])`), `[${gives}]`)
  }
})

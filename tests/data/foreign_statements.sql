-- Statements as users of other systems write them, over the tables of tests/xmlstream/sql/test_foreign_statements.py.
-- "-- # …" begins a kind. Before a statement "-- = …" is the same question as DuckDB is asked it, where it does not know the words;
-- "-- refused" and "-- on Spark" say that it is not answered, with a hint, or is answered by Spark alone.

-- # select and where
SELECT * FROM t;
SELECT k, v FROM t WHERE v > 2;
SELECT k AS key, v * 2 AS twice FROM t;
SELECT t.k, t.v FROM t AS t WHERE t.v IS NOT NULL;
SELECT DISTINCT k FROM t;
SELECT DISTINCT k, v FROM t;
SELECT k + v FROM t;
SELECT -v FROM t;
SELECT v % 2 AS odd FROM t WHERE v IS NOT NULL;
SELECT k, v FROM t WHERE v BETWEEN 2 AND 4;
SELECT k, v FROM t WHERE v NOT BETWEEN 2 AND 4;
SELECT k FROM t WHERE s LIKE 'a%';
SELECT k FROM t WHERE s NOT LIKE '%b' OR s IS NULL;
SELECT k FROM t WHERE k IN (1, 3, 5);
SELECT k FROM t WHERE k NOT IN (1, 3);
SELECT k, CASE WHEN v > 2 THEN 'high' WHEN v IS NULL THEN 'none' ELSE 'low' END AS level FROM t;
SELECT k, CASE k WHEN 1 THEN 'one' WHEN 2 THEN 'two' END AS word FROM t;
SELECT coalesce(v, 0) AS v FROM t;
SELECT nullif(v, 2) AS n FROM t;
SELECT upper(s) AS u, lower(s) AS l, length(s) AS n FROM t;
SELECT s || '-' || s AS d FROM t;
SELECT concat(s, 'x') AS c FROM t WHERE s IS NOT NULL;
SELECT substring(s, 1, 2) AS p FROM t;
SELECT trim(s) AS x, replace(s, 'a', 'z') AS y FROM t;
-- on Spark
SELECT abs(-v) AS a, round(w, 1) AS r, floor(w) AS f, ceil(w) AS c FROM t;
SELECT CAST(v AS BIGINT) AS b, CAST(v AS DOUBLE) AS d, CAST(k AS VARCHAR) AS s FROM t;
SELECT v::BIGINT AS b FROM t;
SELECT greatest(k, v) AS g, least(k, v) AS l FROM t WHERE v IS NOT NULL;
SELECT k, v FROM t WHERE NOT (v > 2 AND k < 3);
SELECT k, v FROM t WHERE v IS DISTINCT FROM 2;
SELECT k, v FROM t WHERE v IS NOT DISTINCT FROM 2;
SELECT k, v > 2 AS big FROM t;
SELECT k, v FROM t WHERE TRUE;
SELECT 1 AS one, k FROM t;
SELECT extract(hour FROM ts) AS h, price FROM bid;
SELECT date_trunc('hour', ts) AS h, price FROM bid;
SELECT year(ts) AS y, month(ts) AS m, day(ts) AS d FROM bid;
SELECT price FROM bid WHERE ts >= TIMESTAMP '2026-01-01 00:10:00';
SELECT ts + INTERVAL '5' MINUTE AS later FROM bid;
SELECT CAST(ts AS DATE) AS d, auction FROM bid;
SELECT regexp_replace(channel, 'o+', '0') AS c FROM bid;
SELECT split_part(channel, 'o', 1) AS c FROM bid;
SELECT left(channel, 2) AS a, right(channel, 2) AS b FROM bid;
-- on Spark
SELECT lpad(channel, 8, '.') AS a, rpad(channel, 8, '.') AS b FROM bid;
-- on Spark
SELECT sqrt(w) AS q, power(w, 2) AS p, ln(w) AS l FROM t WHERE w > 0;
-- on Spark
SELECT sign(v) AS s, exp(0.0 * w) AS e FROM t;
-- on Spark
SELECT reverse(s) AS r, repeat(s, 2) AS d FROM t;
SELECT if(v > 2, 'a', 'b') AS c FROM t;
SELECT * EXCLUDE (w, s) FROM t;
-- = SELECT k, v FROM t
SELECT * EXCEPT (w, s) FROM t;
SELECT t.* FROM t;
SELECT k, v FROM (SELECT k, v FROM t WHERE v > 1) AS x WHERE k < 4;
WITH x AS (SELECT k, v FROM t WHERE v > 1) SELECT k FROM x;
WITH x AS (SELECT k FROM t), y AS (SELECT k FROM x WHERE k > 1) SELECT * FROM y;
WITH x (p, q) AS (SELECT k, v FROM t) SELECT p, q FROM x;
SELECT a.p FROM (SELECT k FROM t) AS a (p);

-- # aggregates
SELECT count(*) FROM t;
SELECT count(v) AS n, sum(v) AS s, min(v) AS lo, max(v) AS hi, avg(v) AS m FROM t;
SELECT k, count(*) AS n FROM t GROUP BY k;
SELECT k, sum(v) AS s FROM t GROUP BY k HAVING sum(v) > 3;
SELECT k, s, count(*) AS n FROM t GROUP BY k, s;
SELECT k, count(DISTINCT v) AS n FROM t GROUP BY k;
SELECT count(DISTINCT k) AS n FROM t;
SELECT sum(DISTINCT v) AS n FROM t;
SELECT k % 2 AS odd, count(*) AS n FROM t GROUP BY k % 2;
SELECT k, sum(v) FILTER (WHERE v > 1) AS s FROM t GROUP BY k;
SELECT k, sum(CASE WHEN v > 1 THEN v ELSE 0 END) AS s FROM t GROUP BY k;
SELECT k, avg(w) AS m FROM t GROUP BY k;
SELECT k, bool_and(v > 1) AS all_big, bool_or(v > 1) AS any_big FROM t GROUP BY k;
SELECT k, max(v) - min(v) AS spread FROM t GROUP BY k;
SELECT k, max(v) AS m FROM t GROUP BY 1;
SELECT k AS key, max(v) AS m FROM t GROUP BY key;
SELECT k, max(v) AS m FROM t GROUP BY ALL;
SELECT max(n) AS m FROM (SELECT k, count(*) AS n FROM t GROUP BY k) AS x;
-- refused
SELECT k, arg_max(s, v) AS a FROM t WHERE v IS NOT NULL AND k < 2 GROUP BY k;
SELECT k, max_by(w, v) AS a FROM t WHERE k < 2 GROUP BY k;
-- refused
SELECT k, any_value(k) AS a FROM t GROUP BY k;
SELECT k, stddev_pop(v) AS d, var_pop(v) AS q FROM t GROUP BY k;
SELECT k, stddev(w) AS d FROM t GROUP BY k;
SELECT k, variance(w) AS d FROM t GROUP BY k;
SELECT k, stddev_samp(w) AS a, var_samp(w) AS b FROM t GROUP BY k;
SELECT corr(v, w) AS c FROM t;
SELECT covar_pop(v, w) AS c, covar_samp(v, w) AS d FROM t;
SELECT regr_slope(w, v) AS a, regr_intercept(w, v) AS b FROM t;
SELECT regr_count(w, v) AS n, regr_r2(w, v) AS r FROM t;
SELECT k, median(v) AS m FROM t GROUP BY k;
SELECT count() FROM t;
SELECT k, count() AS n FROM t GROUP BY k;
SELECT count_if(v > 1) AS n FROM t;
-- refused
SELECT k, string_agg(s, ',') AS l FROM t WHERE s = 'ab' GROUP BY k;
-- refused
SELECT k, listagg(s, ',') AS l FROM t WHERE s = 'ab' GROUP BY k;
SELECT k, bit_xor(v) AS x, bit_or(v) AS o, bit_and(v) AS a FROM t GROUP BY k;
SELECT count(*) + 1 AS n FROM t;
SELECT k FROM t GROUP BY k;
SELECT count(*) AS n FROM t WHERE v > 100;
SELECT k, count(*) AS n FROM t WHERE v > 100 GROUP BY k;
-- = SELECT sum(price) AS total, round(avg(price), 6) AS mean FROM item
SELECT sum(price) AS total, avg(price) AS mean FROM item;
SELECT k, sum(v) + sum(k) AS s FROM t GROUP BY k;
SELECT k, min(s) AS lo, max(s) AS hi FROM t GROUP BY k;
-- on Spark
SELECT approx_count_distinct(k) AS n FROM t;
-- refused
SELECT k, mode(v) AS m FROM t WHERE k = 1 GROUP BY k;
-- refused
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY v) AS m FROM t;
-- refused
SELECT k, product(v) AS p FROM t GROUP BY k;
-- on Spark
-- = SELECT sqrt(count(w)) * sum(power(w - m, 3)) / power(sum(power(w - m, 2)), 1.5) AS s FROM t, (SELECT avg(w) AS m FROM t)
SELECT skewness(w) AS s FROM t;
-- refused
SELECT entropy(v) AS e FROM t;

-- # joins
SELECT t.k, t.v, u.x FROM t JOIN u ON t.k = u.k;
SELECT t.k, u.x FROM t INNER JOIN u ON t.k = u.k AND t.v = u.v;
SELECT t.k, u.x FROM t LEFT JOIN u ON t.k = u.k;
SELECT u.k, t.v FROM t RIGHT JOIN u ON t.k = u.k;
SELECT t.v, u.x FROM t FULL OUTER JOIN u ON t.k = u.k;
SELECT k, t.v AS tv, u.v AS uv FROM t JOIN u USING (k);
SELECT k, v, x FROM t JOIN u USING (k, v);
SELECT t.k, u.x FROM t, u WHERE t.k = u.k;
SELECT a.k, b.v FROM t AS a JOIN t AS b ON a.k = b.v;
SELECT t.k, u.x FROM t JOIN u ON t.k = u.k WHERE t.v > u.v;
SELECT t.k, u.x FROM t JOIN u ON t.k = u.k AND t.v > u.v;
SELECT t.k, u.x, p.name FROM t JOIN u ON t.k = u.k JOIN person AS p ON p.id = t.k;
SELECT p.name, count(*) AS n FROM person AS p JOIN bid AS b ON b.bidder = p.id GROUP BY p.name;
-- = SELECT t.k, t.v FROM t SEMI JOIN u ON t.k = u.k
SELECT t.k, t.v FROM t LEFT SEMI JOIN u ON t.k = u.k;
-- = SELECT t.k, t.v FROM t ANTI JOIN u ON t.k = u.k
SELECT t.k, t.v FROM t LEFT ANTI JOIN u ON t.k = u.k;
SELECT t.k, t.v FROM t SEMI JOIN u ON t.k = u.k;
SELECT t.k, t.v FROM t ANTI JOIN u ON t.k = u.k;
SELECT t.k, t.v FROM t WHERE t.k IN (SELECT u.k FROM u);
SELECT t.k, t.v FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k);
SELECT t.k, t.v FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.k);
SELECT t.k, t.v FROM t WHERE t.k NOT IN (SELECT u.k FROM u WHERE u.k IS NOT NULL) AND t.k IS NOT NULL;
SELECT x.k, y.n FROM t AS x JOIN (SELECT k, count(*) AS n FROM u GROUP BY k) AS y ON x.k = y.k;
SELECT * FROM t NATURAL JOIN u;
SELECT k, x FROM t NATURAL LEFT JOIN u;
SELECT t.k, u.x FROM t JOIN u ON t.k = u.k + 1;
SELECT t.k, u.x FROM t JOIN u ON t.k + 1 = u.k + 1;
SELECT t.k, u.x FROM (t JOIN u ON t.k = u.k);
SELECT a.name, b.price FROM bid AS b LEFT JOIN person AS a ON a.id = b.bidder AND a.state = 'OR';
SELECT t.s, u.x FROM t JOIN u ON t.k = u.k OR t.v = u.v;
SELECT t.s, u.x FROM t JOIN u ON (t.k = u.k AND t.v = 1) OR (t.k = u.k AND u.v = 2);
SELECT count(*) AS n FROM t JOIN u ON t.k = u.k OR t.v = u.v;
SELECT b.price, a.category FROM bid AS b JOIN auction AS a ON b.auction = a.id AND b.ts BETWEEN a.opens AND a.expires;
SELECT a.k, b.k FROM t AS a JOIN u AS b ON a.k = b.k;
SELECT * FROM t JOIN u ON t.k = u.k;
SELECT * FROM t LEFT JOIN u ON t.k = u.k;
SELECT * FROM t AS a, u AS b WHERE a.k = b.k AND a.v = b.v;
SELECT t.*, u.* FROM t JOIN u ON t.k = u.k;
SELECT t.k, t.v, u.k, u.v FROM t FULL JOIN u ON t.k = u.k;
SELECT * FROM bid JOIN bid AS other ON bid.auction = other.auction AND bid.bidder = other.bidder;
SELECT a.id, p.id, p.name FROM auction AS a JOIN person AS p ON a.seller = p.id;
SELECT k, k FROM t;
SELECT k, v AS k FROM t;
SELECT count(*), count(*) FROM t;
SELECT max(v), max(v) FROM t;
SELECT t.k, u.x FROM t JOIN (u JOIN person AS p ON p.id = u.k) ON t.k = u.k;
SELECT c.k, x.x FROM t AS c LEFT JOIN (SELECT * FROM u WHERE v > 1) AS x ON c.k = x.k;
-- = SELECT b.price, p.name FROM bid b ASOF JOIN price_list p ON b.auction = p.auction AND b.ts >= p.ts
SELECT b.price, p.name FROM bid AS b ASOF JOIN price_list AS p ON b.auction = p.auction AND b.ts >= p.ts;
-- = SELECT b.price, p.name FROM bid b ASOF JOIN price_list p ON b.auction = p.auction AND b.ts >= p.ts
SELECT b.price, p.name FROM bid AS b JOIN price_list FOR SYSTEM_TIME AS OF b.ts AS p ON b.auction = p.auction;
-- = SELECT b.price, p.name FROM bid b ASOF LEFT JOIN price_list p ON b.auction = p.auction AND b.ts >= p.ts
SELECT b.price, p.name FROM bid AS b LEFT JOIN price_list FOR SYSTEM_TIME AS OF b.ts AS p ON b.auction = p.auction;

-- = SELECT t.s, u.x FROM t JOIN u ON t.s IS NOT DISTINCT FROM u.x
-- refused
SELECT t.s, u.x FROM t JOIN u ON t.s <=> u.x;
SELECT t.s, u.x FROM t JOIN u ON coalesce(t.s, '~') = coalesce(u.x, '~');

-- # order and limit
SELECT k, v FROM t ORDER BY k, v;
SELECT k, v FROM t ORDER BY v DESC NULLS LAST, k LIMIT 3;
SELECT k FROM t ORDER BY v, k, w;
SELECT s FROM t ORDER BY k, v;
SELECT k, v * 2 AS d FROM t ORDER BY v * 2, k;
SELECT upper(s) AS u FROM t ORDER BY s;
SELECT k, sum(v) AS s FROM t GROUP BY k ORDER BY s DESC;
SELECT k FROM t GROUP BY k ORDER BY sum(v), k;
SELECT k FROM t GROUP BY k ORDER BY count(*) DESC, k LIMIT 2;
SELECT t.s FROM t JOIN u ON t.k = u.k ORDER BY u.x, t.v;
SELECT DISTINCT k FROM t ORDER BY k;
SELECT k, v FROM t ORDER BY 1, 2;
SELECT k FROM t WHERE k = 1 LIMIT 100;
SELECT count(*) AS n FROM (SELECT k FROM t LIMIT 3) AS x;
SELECT count(*) AS n FROM (SELECT k FROM t LIMIT 3 OFFSET 2) AS x;
SELECT k, v FROM t ORDER BY k, v, w LIMIT 3 OFFSET 1;
SELECT k, v FROM t ORDER BY k, v, w OFFSET 2;
SELECT k, v FROM t ORDER BY k, v, w OFFSET 2 ROWS FETCH NEXT 2 ROWS ONLY;
SELECT k, v FROM t ORDER BY k, v, w FETCH FIRST 2 ROWS ONLY;
SELECT k, v FROM t LIMIT ALL;
-- refused
SELECT k FROM t LIMIT 0;
SELECT price FROM bid ORDER BY ts, price;
SELECT k, v FROM t ORDER BY abs(v - 2), k, v LIMIT 2;

-- # set operations
SELECT k FROM t UNION ALL SELECT k FROM u;
SELECT k FROM t UNION SELECT k FROM u;
SELECT k, v FROM t INTERSECT SELECT k, v FROM u;
SELECT k, v FROM t EXCEPT SELECT k, v FROM u;
SELECT k FROM t EXCEPT ALL SELECT k FROM u;
SELECT k FROM t INTERSECT ALL SELECT k FROM u;
SELECT k, v FROM t EXCEPT ALL SELECT k, v FROM u;
SELECT k, v FROM t INTERSECT ALL SELECT k, v FROM u;
SELECT k FROM t UNION ALL SELECT v FROM u UNION ALL SELECT id FROM person;
(SELECT k FROM t) UNION ALL (SELECT k FROM u);
SELECT k, 'a' AS src FROM t UNION ALL SELECT k, 'b' FROM u;
SELECT k FROM t EXCEPT SELECT k FROM u EXCEPT SELECT id FROM person;
SELECT count(*) AS n FROM (SELECT k FROM t UNION SELECT k FROM u) AS x;
SELECT s FROM t UNION ALL SELECT x FROM u;
SELECT k FROM t WHERE k > 1 INTERSECT SELECT k FROM u WHERE k < 5;
-- refused
SELECT k, v FROM t UNION BY NAME SELECT v, k FROM u;

-- # subqueries
SELECT k, v FROM t WHERE v > 3 OR k IN (SELECT k FROM u);
SELECT k, v FROM t WHERE v > 3 OR EXISTS (SELECT 1 FROM u WHERE u.k = t.k);
SELECT k, v FROM t WHERE k IN (SELECT k FROM u) OR k IN (SELECT id FROM person);
SELECT k, v FROM t WHERE NOT (k IN (SELECT k FROM u WHERE k IS NOT NULL) OR v > 3);
SELECT k, EXISTS (SELECT 1 FROM u WHERE u.k = t.k) AS there FROM t;
-- = SELECT k, coalesce(k IN (SELECT k FROM u WHERE k IS NOT NULL), false) AS there FROM t
SELECT k, k IN (SELECT k FROM u WHERE k IS NOT NULL) AS there FROM t;
SELECT k, CASE WHEN EXISTS (SELECT 1 FROM u WHERE u.k = t.k) THEN 'yes' ELSE 'no' END AS there FROM t;
SELECT k, CASE WHEN k IN (SELECT id FROM person) THEN 1 ELSE 0 END AS there FROM t WHERE k IS NOT NULL;
SELECT k, v FROM t WHERE (v > 3 AND k IN (SELECT k FROM u)) OR v = 1;
SELECT k, v FROM t WHERE v > (SELECT avg(v) FROM t);
SELECT k, v FROM t WHERE v = (SELECT max(v) FROM t);
SELECT k, (SELECT max(v) FROM u) AS m FROM t;
SELECT k, (SELECT max(v) FROM u) FROM t;
SELECT k, (SELECT max(u.v) FROM u WHERE u.k = t.k) AS m FROM t;
SELECT k, (SELECT count(*) FROM u WHERE u.k = t.k) AS n FROM t;
SELECT k, v FROM t WHERE v > (SELECT avg(u.v) FROM u WHERE u.k = t.k);
-- refused
SELECT k FROM t WHERE v > ALL (SELECT v FROM u WHERE v IS NOT NULL AND v < 2);
SELECT k FROM t WHERE v = ANY (SELECT v FROM u);
SELECT k FROM t WHERE v = SOME (SELECT v FROM u WHERE k = 1) OR w > 2;
SELECT k, v FROM t WHERE v <> ALL (SELECT v FROM u);
SELECT k, v FROM t WHERE (k, v) IN (SELECT k, v FROM u);
SELECT name FROM person WHERE id IN (SELECT bidder FROM bid WHERE price > 20);
SELECT name FROM person WHERE id NOT IN (SELECT bidder FROM bid WHERE bidder IS NOT NULL);
SELECT k, v, (SELECT min(v) FROM u) + v AS s FROM t;
-- refused
SELECT x.k, y.m FROM t AS x, LATERAL (SELECT max(u.v) AS m FROM u WHERE u.k = x.k) AS y;
SELECT sum(v) AS s FROM t WHERE k IN (SELECT k FROM u) GROUP BY k;
-- refused
SELECT count(*) FILTER (WHERE k IN (SELECT k FROM u)) AS n FROM t;
-- refused
SELECT k, count(*) AS n FROM t GROUP BY k HAVING count(*) > (SELECT min(v) FROM u);

SELECT k, v FROM t WHERE (k IN (SELECT k FROM u)) = false;
SELECT k, v FROM t WHERE (k NOT IN (SELECT k FROM u)) = false;
SELECT k, v FROM t WHERE (k NOT IN (SELECT k FROM u WHERE k > 2)) = true OR v > 3;
SELECT k, v FROM t WHERE (v > 1 AND k IN (SELECT k FROM u WHERE k > 1)) = false;
SELECT k, v FROM t WHERE CASE k IN (SELECT k FROM u WHERE k > 2) WHEN true THEN v > 4 WHEN false THEN v > 1 END;
SELECT k, v FROM t WHERE (k IN (SELECT k FROM u WHERE k > 2)) <> true AND v > 1;
SELECT k, v FROM t WHERE false = EXISTS (SELECT 1 FROM u WHERE u.k = t.k);

-- # grouping sets
SELECT k, s, count(*) AS n FROM t GROUP BY ROLLUP (k, s);
SELECT k, s, count(*) AS n FROM t GROUP BY CUBE (k, s);
SELECT k, s, count(*) AS n FROM t GROUP BY GROUPING SETS ((k, s), (k), ());
SELECT k, sum(v) AS x FROM t GROUP BY ROLLUP (k);
SELECT k, sum(v) AS x FROM t GROUP BY GROUPING SETS ((k), ());
SELECT channel, bidder, sum(price) AS x FROM bid GROUP BY GROUPING SETS ((channel), (bidder));
SELECT k, s, grouping(k) AS gk, count(*) AS n FROM t GROUP BY ROLLUP (k, s);
SELECT k, s, count(*) AS n FROM t GROUP BY ROLLUP (k, s) HAVING count(*) > 1;
SELECT k % 2 AS odd, count(*) AS n FROM t GROUP BY ROLLUP (k % 2);
SELECT state, city, count(*) AS n FROM person GROUP BY CUBE (state, city);
SELECT k, s, max(v) AS m FROM t GROUP BY k, ROLLUP (s);
-- refused
SELECT count(*) AS n FROM t GROUP BY ();
-- = SELECT k, s, count(*) AS n FROM t GROUP BY ROLLUP (k, s)
SELECT k, s, count(*) AS n FROM t GROUP BY k, s WITH ROLLUP;
-- = SELECT k, s, count(*) AS n FROM t GROUP BY CUBE (k, s)
SELECT k, s, count(*) AS n FROM t GROUP BY k, s WITH CUBE;

-- # window functions
SELECT auction, price, row_number() OVER (PARTITION BY auction ORDER BY ts, price) AS r FROM bid;
SELECT auction, price, rank() OVER (PARTITION BY auction ORDER BY price DESC) AS r FROM bid;
SELECT auction, price, dense_rank() OVER (PARTITION BY auction ORDER BY price DESC) AS r FROM bid;
SELECT auction, price, sum(price) OVER (PARTITION BY auction ORDER BY ts) AS s FROM bid;
SELECT auction, price, avg(price) OVER (PARTITION BY auction ORDER BY ts ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS s FROM bid;
SELECT auction, price, lag(price) OVER (PARTITION BY auction ORDER BY ts) AS p FROM bid;
SELECT auction, price, lead(price, 1, 0) OVER (PARTITION BY auction ORDER BY ts) AS p FROM bid;
SELECT auction, price, first_value(price) OVER (PARTITION BY auction ORDER BY ts) AS p FROM bid;
SELECT auction, price, last_value(price) OVER (PARTITION BY auction ORDER BY ts) AS p FROM bid;
SELECT auction, price, last_value(price) OVER (PARTITION BY auction ORDER BY ts ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS p FROM bid;
SELECT auction, price, nth_value(price, 2) OVER (PARTITION BY auction ORDER BY ts) AS p FROM bid;
SELECT auction, price, ntile(2) OVER (PARTITION BY auction ORDER BY ts) AS p FROM bid;
SELECT auction, price, bool_or(price > 20) OVER (PARTITION BY auction ORDER BY ts) AS p FROM bid;
SELECT auction, price, count(*) OVER (PARTITION BY auction) AS n FROM bid;
SELECT auction, price, max(price) OVER (PARTITION BY auction) AS n FROM bid;
SELECT auction, price, price - avg(price) OVER (PARTITION BY auction) AS n FROM bid;
SELECT auction, price, percent_rank() OVER (PARTITION BY auction ORDER BY price) AS n FROM bid;
SELECT auction, price, cume_dist() OVER (PARTITION BY auction ORDER BY price) AS n FROM bid;
SELECT auction, price, sum(price) OVER w AS s FROM bid WINDOW w AS (PARTITION BY auction ORDER BY ts);
SELECT auction, price, sum(price) OVER w AS s, count(*) OVER w AS n FROM bid WINDOW w AS (PARTITION BY auction ORDER BY ts);
SELECT price, count(*) OVER () AS n FROM bid;
SELECT price, sum(price) OVER (ORDER BY ts) AS n FROM bid;
SELECT channel, sum(price) AS s, rank() OVER (ORDER BY sum(price) DESC) AS r FROM bid GROUP BY channel;
SELECT auction, bidder, sum(price) AS s, sum(sum(price)) OVER (PARTITION BY auction) AS whole FROM bid GROUP BY auction, bidder;
SELECT auction, bidder, row_number() OVER (PARTITION BY auction ORDER BY count(*) DESC, bidder) AS r FROM bid GROUP BY auction, bidder;
SELECT * FROM (SELECT auction, price, row_number() OVER (PARTITION BY auction ORDER BY price DESC, bidder) AS r FROM bid) AS x WHERE r <= 2;
SELECT auction, price FROM bid QUALIFY row_number() OVER (PARTITION BY auction ORDER BY price DESC, bidder) = 1;
SELECT auction, price, sum(price) OVER (PARTITION BY auction ORDER BY ts RANGE BETWEEN INTERVAL '10' MINUTE PRECEDING AND CURRENT ROW) AS s FROM bid;
SELECT auction, price, min(price) OVER (PARTITION BY auction ORDER BY ts ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS s FROM bid;
SELECT auction, price, sum(price) OVER (PARTITION BY auction ORDER BY ts ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS s FROM bid;
SELECT auction, price, row_number() OVER (PARTITION BY auction ORDER BY ts, price) + 10 AS r FROM bid;
SELECT DISTINCT auction, max(price) OVER (PARTITION BY auction) AS m FROM bid;
SELECT auction, max(price) OVER (PARTITION BY auction) AS m, row_number() OVER (PARTITION BY auction ORDER BY ts, price) AS r FROM bid;

-- # explode
-- = SELECT order_id, unnest(tags) AS tag FROM item
SELECT order_id, explode(tags) AS tag FROM item;
-- = SELECT order_id, tag FROM item, unnest(tags) AS x(tag)
SELECT order_id, tag FROM item LATERAL VIEW explode(tags) x AS tag;
SELECT order_id, unnest(tags) AS tag FROM item;
-- = SELECT order_id, tag FROM item, unnest(tags) AS x(tag)
SELECT order_id, tag FROM item CROSS JOIN UNNEST(tags) AS x (tag);
SELECT order_id, x.tag FROM item, unnest(tags) AS x(tag);
-- = SELECT order_id, x.tag FROM item, unnest(tags) AS x(tag)
SELECT order_id, x.tag FROM item, LATERAL explode(tags) AS x(tag);
-- refused
SELECT order_id, len(tags) AS n FROM item;
-- refused
SELECT order_id, array_length(tags) AS n FROM item;
SELECT order_id, tags[1] AS f FROM item WHERE order_id < 0;
-- = SELECT order_id, len(tags) AS n FROM item
SELECT order_id, cardinality(tags) AS n FROM item;
-- refused
SELECT order_id, list_contains(tags, 'new') AS n FROM item;
SELECT order_id, array_contains(tags, 'new') AS n FROM item;
-- = SELECT k, unnest(generate_series(1, v)) AS i FROM t WHERE v IS NOT NULL AND k IS NOT NULL
SELECT k, explode(sequence(1, v)) AS i FROM t WHERE v IS NOT NULL AND k IS NOT NULL;
-- refused
SELECT k, unnest(generate_series(1, v)) AS i FROM t WHERE v IS NOT NULL AND k IS NOT NULL;
-- refused
-- = SELECT order_id, i - 1 AS pos, tags[i] AS tag FROM (SELECT order_id, tags, unnest(generate_series(1, len(tags))) AS i FROM item)
SELECT order_id, posexplode(tags) AS (pos, tag) FROM item;
-- refused
SELECT k, unnest([v, k]) AS i FROM t;
-- = SELECT k, unnest([v, k]) AS i FROM t
SELECT k, explode(array(v, k)) AS i FROM t;

-- # windows in FROM
-- = SELECT auction, time_bucket(INTERVAL 10 MINUTE, ts) AS window_start, count(*) AS n FROM bid GROUP BY ALL
SELECT auction, window_start, count(*) AS n FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '10' MINUTES)) GROUP BY auction, window_start, window_end;
-- = SELECT time_bucket(INTERVAL 10 MINUTE, ts) AS window_start, time_bucket(INTERVAL 10 MINUTE, ts) + INTERVAL 10 MINUTE AS window_end, sum(price) AS n FROM bid GROUP BY ALL
SELECT window_start, window_end, sum(price) AS n FROM TABLE(TUMBLE(DATA => TABLE bid, TIMECOL => DESCRIPTOR(ts), SIZE => INTERVAL '10' MINUTES)) GROUP BY window_start, window_end;
-- = SELECT w AS window_start, max(price) AS m FROM (SELECT price, ts, unnest([time_bucket(INTERVAL 5 MINUTE, ts), time_bucket(INTERVAL 5 MINUTE, ts) - INTERVAL 5 MINUTE]) AS w FROM bid) GROUP BY w
SELECT window_start, max(price) AS m FROM TABLE(HOP(TABLE bid, DESCRIPTOR(ts), INTERVAL '5' MINUTES, INTERVAL '10' MINUTES)) GROUP BY window_start, window_end;
-- = SELECT w AS window_start, e AS window_end, count(*) AS n FROM (SELECT price, ts, time_bucket(INTERVAL 1 HOUR, ts) AS w, unnest(generate_series(time_bucket(INTERVAL 20 MINUTE, ts) + INTERVAL 20 MINUTE, time_bucket(INTERVAL 1 HOUR, ts) + INTERVAL 1 HOUR, INTERVAL 20 MINUTE)) AS e FROM bid) GROUP BY ALL
SELECT window_start, window_end, count(*) AS n FROM TABLE(CUMULATE(TABLE bid, DESCRIPTOR(ts), INTERVAL '20' MINUTES, INTERVAL '1' HOUR)) GROUP BY window_start, window_end;
-- = SELECT auction, time_bucket(INTERVAL 10 MINUTE, ts) AS window_start, count(*) AS n FROM bid GROUP BY ALL
SELECT auction, window_start, count(*) AS n FROM TUMBLE(bid, ts, INTERVAL '10 MINUTES') GROUP BY auction, window_start;
-- = SELECT w AS window_start, max(price) AS m FROM (SELECT price, ts, unnest([time_bucket(INTERVAL 5 MINUTE, ts), time_bucket(INTERVAL 5 MINUTE, ts) - INTERVAL 5 MINUTE]) AS w FROM bid) GROUP BY w
SELECT window_start, max(price) AS m FROM HOP(bid, ts, INTERVAL '5 MINUTES', INTERVAL '10 MINUTES') GROUP BY window_start;
-- = SELECT auction, time_bucket(INTERVAL 10 MINUTE, ts) AS ws, count(*) AS n FROM bid GROUP BY ALL
SELECT auction, TUMBLE_START(ts, INTERVAL '10' MINUTE) AS ws, count(*) AS n FROM bid GROUP BY auction, TUMBLE(ts, INTERVAL '10' MINUTE);
-- = SELECT auction, time_bucket(INTERVAL 10 MINUTE, ts) AS ws, count(*) AS n FROM bid GROUP BY ALL
SELECT auction, window.start AS ws, count(*) AS n FROM bid GROUP BY auction, window(ts, '10 minutes');
-- = SELECT date_trunc('hour', ts) AS h, count(*) AS n FROM bid GROUP BY ALL
SELECT date_trunc('hour', ts) AS h, count(*) AS n FROM bid GROUP BY date_trunc('hour', ts);
-- refused
-- = SELECT time_bucket(INTERVAL 10 MINUTE, ts) AS w, count(*) AS n FROM bid GROUP BY ALL
SELECT time_bucket(INTERVAL '10 minutes', ts) AS w, count(*) AS n FROM bid GROUP BY 1;
-- = SELECT window_start, price FROM (SELECT price, time_bucket(INTERVAL 10 MINUTE, ts) AS window_start FROM bid)
SELECT window_start, price FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '10' MINUTES));

-- # structures and values
-- = SELECT row(k, v) AS p FROM t
SELECT struct(k, v) AS p FROM t;
-- = SELECT row(k, v) AS p FROM t
SELECT named_struct('a', k, 'b', v) AS p FROM t;
-- refused
SELECT row(k, v) AS p FROM t;
SELECT (k, v) AS p FROM t;
-- = SELECT p['a'] AS a FROM (SELECT {'a': k, 'b': v} AS p FROM t)
SELECT p.a FROM (SELECT named_struct('a', k, 'b', v) AS p FROM t) AS x;
-- = SELECT [k, v] AS l FROM t
SELECT array(k, v) AS l FROM t;
-- refused
SELECT [k, v] AS l FROM t;
-- on Spark
SELECT k FROM t WHERE (k, v) = (1, 2);
SELECT count(DISTINCT (k, v)) AS n FROM t;
-- = SELECT w::INT AS i, k::VARCHAR AS s FROM t WHERE w = floor(w)
SELECT int(w) AS i, string(k) AS s FROM t WHERE w = floor(w);
-- = SELECT CAST(k AS DOUBLE) AS i, CAST(v AS BIGINT) AS s FROM t
SELECT double(k) AS i, bigint(v) AS s FROM t;
SELECT date(ts) AS d FROM bid;
SELECT CAST(price AS DECIMAL(12, 3)) AS p FROM item;
SELECT CAST(1.25 AS DECIMAL(10, 1)) AS p, k FROM t;
SELECT price * qty AS total FROM item;
SELECT sum(price * qty) AS total FROM item;
SELECT order_id, price / 2 AS half FROM item;
SELECT k FROM t WHERE v IN (1, k / 1);
-- refused
SELECT x.a FROM (VALUES (1, 'a'), (2, 'b')) AS x (a, b);
-- refused
SELECT t.k, x.b FROM t JOIN (VALUES (1, 'a'), (2, 'b')) AS x (a, b) ON t.k = x.a;
SELECT TRY_CAST(s AS INT) AS i FROM t;
-- refused
SELECT typeof(k) AS x FROM t WHERE k < 0;
SELECT md5(s) AS h FROM t;
-- on Spark
SELECT hash(k) AS h FROM t WHERE k < 0;
-- refused
SELECT strftime(ts, '%Y-%m-%d') AS d FROM bid;
-- = SELECT strftime(ts, '%Y-%m-%d') AS d FROM bid
SELECT date_format(ts, 'yyyy-MM-dd') AS d FROM bid;
-- refused
SELECT to_char(ts, 'YYYY-MM-DD') AS d FROM bid WHERE price < 0;
-- refused
SELECT epoch(ts) AS e FROM bid;
-- on Spark
-- = SELECT epoch(ts)::BIGINT AS e FROM bid
SELECT unix_timestamp(ts) AS e FROM bid;
SELECT date_part('minute', ts) AS m FROM bid;
-- refused
SELECT datediff('minute', opens, expires) AS m FROM auction;
-- = SELECT datediff('minute', opens, expires) AS m FROM auction
SELECT timestampdiff(MINUTE, opens, expires) AS m FROM auction;
-- on Spark
SELECT opens - expires AS m FROM auction WHERE id < 0;
-- = SELECT regexp_matches(channel, '^g') AS x FROM bid
SELECT regexp_like(channel, '^g') AS x FROM bid;
SELECT channel ILIKE 'G%' AS x FROM bid;
-- refused
SELECT starts_with(channel, 'g') AS x FROM bid;
SELECT contains(channel, 'oo') AS x FROM bid;
-- on Spark
SELECT position('o' IN channel) AS x FROM bid;
-- refused
SELECT strpos(channel, 'o') AS x FROM bid;
SELECT concat_ws('-', channel, 'x') AS x FROM bid;
-- on Spark
-- = SELECT channel AS x FROM bid WHERE price < 0
SELECT initcap(channel) AS x FROM bid WHERE price < 0;
-- on Spark
SELECT ascii(channel) AS x, chr(65) AS y FROM bid;
SELECT current_date > DATE '2020-01-01' AS x FROM t;
-- refused
SELECT mod(v, 2) AS m, div(v, 2) AS d FROM t WHERE v < 0;
-- refused
SELECT v // 2 AS h FROM t WHERE v IS NOT NULL;
SELECT v / 2 AS h FROM t;
-- refused
SELECT bit_count(v) AS h, v & 1 AS a, v | 1 AS b, xor(v, 1) AS c FROM t WHERE v IS NOT NULL;
-- on Spark
SELECT pi() * w AS x FROM t WHERE w = 0;
-- = SELECT coalesce(v, -1) AS x, coalesce(v, -1) AS y FROM t
SELECT ifnull(v, -1) AS x, nvl(v, -1) AS y FROM t;
SELECT translate(s, 'ab', 'xy') AS x FROM t;
SELECT v + 3 AS a, v + 10 AS b FROM (SELECT v * 2 AS v FROM t) AS x WHERE v + 3 < v + 10;

-- Bids of a middle price, their prices in euros, with the time of day and how many letters c they carry.
-- NEXMark, Query 14, as nexmark/nexmark puts it for Flink. Its function count_char is written with length and replace.
-- Nothing is kept, and every punctuation goes on, those of auctions, bidders and times.
-- Verdict, followed: answers at once, keeps nothing.

CREATE TABLE bid (
  auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, dateTime TIMESTAMP, extra STRING
) USING punctuated_xml
OPTIONS (path '${AUCTIONS}/bid.xml', rowTag 'bid',
  schemes 'auction; bidder; dateTime prefix', maxBytesPerSlice '320m');

SELECT auction, bidder, CAST(0.908 * price AS DECIMAL(23, 3)) AS price,
       CASE
         WHEN HOUR(dateTime) >= 8 AND HOUR(dateTime) <= 18 THEN 'dayTime'
         WHEN HOUR(dateTime) <= 6 OR HOUR(dateTime) >= 20 THEN 'nightTime'
         ELSE 'otherTime'
       END AS bidTimeType,
       dateTime, extra, length(extra) - length(replace(extra, 'c', '')) AS c_counts
FROM bid
WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000;

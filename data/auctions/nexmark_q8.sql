-- Who has come and begun to sell in the same period of ten seconds.
-- NEXMark, Query 8, as nexmark/nexmark puts it for Flink.
-- A person leaves the join when they sell nothing any more (auction.seller) or the period is over (auction.dateTime),
-- an auction when its seller is there (person.id is unique) or cannot come any more (person.dateTime).
-- Verdict, followed: answers at once, keeps what is open.

CREATE TABLE person (
  id BIGINT, name STRING, emailAddress STRING, creditCard STRING, city STRING, state STRING, dateTime TIMESTAMP,
  extra STRING
) USING punctuated_xml
OPTIONS (path '${AUCTIONS}/person.xml', rowTag 'person',
  schemes 'id; dateTime prefix', maxBytesPerSlice '10m');

CREATE TABLE auction (
  id BIGINT, itemName STRING, description STRING, initialBid BIGINT, reserve BIGINT, dateTime TIMESTAMP,
  expires TIMESTAMP, seller BIGINT, category BIGINT, extra STRING
) USING punctuated_xml
OPTIONS (path '${AUCTIONS}/auction.xml', rowTag 'auction',
  schemes 'id; seller; dateTime prefix', maxBytesPerSlice '55m');

SELECT P.id, P.name, P.window.start AS starttime
FROM (SELECT DISTINCT id, name, window(dateTime, '10 seconds') AS window FROM person) P
JOIN (SELECT DISTINCT seller, window(dateTime, '10 seconds') AS window FROM auction) A
ON P.id = A.seller AND P.window.start = A.window.start;
